"""Style sheets of coloured captions, the cards of an answer and forests. No import, since pages load them first."""

COLOURED = """
.cb-words {display: flex; flex-wrap: wrap; align-items: flex-start; gap: .25rem .12rem; font-size: 1.02rem;
  overflow-wrap: anywhere; line-height: 1.4; margin: .15rem 0}
.cb-w {display: inline-block; max-width: 100%; border-radius: 4px; padding: 1px 4px; text-align: center}
.cb-w small {display: block; font-size: .7rem; line-height: 1.1; font-variant-numeric: tabular-nums}
.cb-first {border-bottom: 2px dotted var(--cb-orange)}
.cb-second {border-bottom: 2px solid var(--cb-blue)}
.cb-masked {border: 1px dashed var(--cb-grey)}
.cb-alone {font-weight: 750}
.cb-legend {font-size: .86rem; margin: .1rem 0}
.cb-columns {display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 1rem 1.2rem}
.cb-columns > section {border-top: 3px solid color-mix(in srgb, currentColor 30%, transparent); padding-top: .35rem;
  min-width: 0}
.cb-columns header {display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .6rem}
.cb-columns header b {overflow-wrap: anywhere}
.cb-columns .read {border-top-color: currentColor}
.cb-people {border-left: 2px solid color-mix(in srgb, currentColor 25%, transparent); padding-left: .5rem;
  margin: .3rem 0; font-size: .88rem; line-height: 1.4}
"""

ANSWER = """
.cb-answer-page h2 {font-size: 2rem !important; line-height: 1.2; margin: .1rem 0 .3rem; padding: 0; font-weight: 680}
.cb-answer-page .because {font-size: 1.08rem; line-height: 1.5; max-width: 64rem; margin: 0 0 .2rem; opacity: .88}
.cb-card small {display: block; font-size: .86rem; opacity: .75; margin-bottom: .1rem}
.cb-card b {font-size: 1.85rem; font-weight: 660; font-variant-numeric: tabular-nums; line-height: 1.2}
.cb-card .interval {font-size: 1rem; opacity: .78; font-variant-numeric: tabular-nums; margin-left: .35rem}
.cb-card p {margin: .25rem 0 0; font-size: .92rem; line-height: 1.4; opacity: .88}
.cb-card .values {display: flex; flex-wrap: wrap; gap: 0 1.3rem}
.cb-card .values span {white-space: nowrap}
.cb-card .values em {font-style: normal; font-size: .92rem; margin-right: .35rem}
.cb-card .values i {display: inline-block; width: .65rem; height: .65rem; border-radius: 50%; margin-right: .35rem}
.cb-cross {border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; margin: .3rem 0}
.cb-cross :is(td, th) {padding: .5rem 1rem; border: 0; text-align: right; font-weight: 400}
.cb-cross th:first-child {text-align: left}
.cb-cross td.box {border: 1px solid color-mix(in srgb, currentColor 20%, transparent); min-width: 6.5rem;
  text-align: center; font-size: 1.12rem}
.cb-cross td.diagonal {background: color-mix(in srgb, #1D5FA8 14%, transparent); font-weight: 650}
.cb-cross td.difference {text-align: left; white-space: nowrap}
.cb-cross tr.decides td.difference {font-weight: 650}
"""

FOREST = """
.cb-forest {font-variant-numeric: tabular-nums; font-size: .94rem; color: inherit}
.cb-forest .lines {display: grid; grid-template-columns: minmax(4rem, max-content) minmax(7rem, 1fr) repeat(3, auto);
  column-gap: .8rem}
.cb-forest .line {display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; align-items: center;
  min-height: 34px; padding: 0 .5rem; border: 0; border-radius: 6px; background: none; font: inherit; color: inherit;
  text-align: left; box-sizing: border-box}
.cb-forest button.line {cursor: pointer}
.cb-forest button.line:hover {background: color-mix(in srgb, currentColor 6%, transparent)}
.cb-forest button.line:focus-visible {outline: 2px solid #3B82D0; outline-offset: -2px}
.cb-forest .read {background: color-mix(in srgb, currentColor 7%, transparent); font-weight: 650}
.cb-forest .name {overflow: hidden; text-overflow: ellipsis; white-space: nowrap; max-width: 11rem}
.cb-forest .track {position: relative; height: 100%; min-height: 34px}
.cb-forest.double .track {min-height: 44px}
.cb-forest .grid {position: absolute; top: 0; bottom: 0; width: 1px;
  background: color-mix(in srgb, currentColor 10%, transparent)}
.cb-forest .zero {position: absolute; top: 0; bottom: 0; border-left: 1.5px dashed #8A94A3}
.cb-forest .bar {position: absolute; height: 3px; margin-top: -1.5px; border-radius: 2px}
.cb-forest .dot {position: absolute; width: 11px; height: 11px; margin: -5.5px 0 0 -5.5px; border-radius: 50%;
  border: 2px solid; box-sizing: border-box}
.cb-forest .number {text-align: right; white-space: nowrap}
.cb-forest.double .number {line-height: 1.4}
.cb-forest .tail {opacity: .82; font-weight: 400}
.cb-forest .foot, .cb-forest .foot .track {min-height: 18px; height: 18px; font-size: .8rem}
.cb-forest .tick {position: absolute; transform: translateX(-50%); top: 0; opacity: .85}
.cb-forest .title {text-align: center; font-size: .84rem; opacity: .88; padding: 2px 0}
.cb-forest .legend {display: flex; gap: 1.2rem; font-size: .86rem; padding: 0 .5rem 2px}
.cb-forest .legend i {display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: .4rem}
"""
