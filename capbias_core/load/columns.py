"""What the columns of a file are: by its format, by exact usual names, or asked about. Content decides nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from capbias_core.attributes import known_attributes
from capbias_core.attributes.labels import is_about, is_about_labeller, suggest_mapping, value_of_name
from capbias_core.errors import CapbiasError, nearest, short, unknown_name
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, kind_title
from capbias_core.load.join import USUAL
from capbias_core.load.questions import Ask, Given, Option
from capbias_core.load.sheet import Sheet, cell_text, is_missing, is_scalar, last_part, listed, present
from capbias_core.load.tables import is_boxes
from capbias_core.types import Attribute

MODEL = str.split("""
    prediction predictions pred preds generated_caption generated_captions generated_text generated model_caption
    model_output response output hypothesis filtered_resps model_answer answer
""")
PLAIN = str.split("""
    caption captions caption_str caption_text description descriptions sentence sentences text texts comment comments
    raw phrase content
""")
HUMAN = str.split("""
    reference references refs ref ground_truth ground_truths gt gts human_caption human_captions reference_strs target
    targets gold annotation
""")
CAPTIONER = ["model", "model_name", "model_id", "captioner", "system", "method"]
NEVER = (
    str.split("""
    question prompt input instruction instructions title options license config doc_hash user query name category
""")
    + USUAL.split()
)
STATUS = str.split("""
    status answer quality qc review is_valid valid is_rejected rejected skipped was_cancelled cancelled spam flagged
    state is_precanned decision verdict approved
""")
GOOD = str.split("""
    accept accepted approve approved submitted completed complete pass passed ok good valid done keep yes
""")
BAD = str.split("""
    reject rejected declined ignore ignored skip skipped draft drafts discarded pending fail failed bad invalid
    cancelled canceled spam deleted duplicate flagged no
""")
NEGATIVE = str.split("""
    is_rejected rejected skipped was_cancelled cancelled spam flagged is_precanned is_deleted deleted
""")
HUMAN_FILE = re.compile(r"(?i)(?:^|[_\W])(?:humans?|refs?|references?|gts?|ground|truth|annotators?)(?:[_\W\d]|$)")
HUMAN_VALUES = str.split("""
    human humans reference references ref gt ground_truth groundtruth people annotator
""")
MOST_LABELS = 12


@dataclass(frozen=True)
class Wanted:
    """An attribute whose labels are looked for. attribute: None if it is only a column of labels."""

    name: str
    attribute: Attribute | None
    needed: bool = True  # False if files without its labels are fine

    @property
    def names(self) -> set[str]:
        """Usual names of its column."""
        names = (self.name, *(self.attribute.columns if self.attribute else ()))
        return {last_part(name) for name in names} | {name.casefold() for name in names}

    def value_of(self, label: object) -> str | None:
        """The value that a label is read as."""
        if self.attribute is None:
            return str(label)
        return suggest_mapping(self.attribute, [str(label)])[str(label)] if not is_missing(label) else None


@dataclass
class Roles:
    """The columns of a file by what they hold."""

    captions: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)  # by attribute; `Female=column` if true means the value
    objects: bool = False
    several: str = ""  # how rows of an image combine, if the format says it

    @property
    def used(self) -> list[str]:
        """The columns that hold no image IDs."""
        labels = [name for names in self.labels.values() for name in names]
        return [*self.captions, *self.references, *labels, *(name.rpartition("=")[2] for name in labels)]


def words_in(cells: Sequence) -> float:
    """Words of a text in a column, on average; 0 unless most have several."""
    texts = [
        text
        for cell in cells
        for text in (cell if isinstance(cell, list) else [cell])
        if isinstance(text, str) and text.strip()
    ]
    if not texts or sum(" " not in text.strip() for text in texts) > len(texts) / 2:
        return 0.0
    return sum(len(text.split()) for text in texts) / len(texts)


def _base(column: str) -> str:
    """The last part of a name without a number at its end: ref of `ref1`."""
    return re.sub(r"[ _-]?\d+$", "", last_part(column))


def _token_numbers(cells: Sequence) -> bool:
    lists = [cell for cell in cells if isinstance(cell, list) and cell]
    return bool(lists) and all(isinstance(token, int | float) for cell in lists for token in cell)


def check_tokens(sheet: Sheet, column: str) -> None:
    """Raises CapbiasError for a column of numbers of tokens."""
    if _token_numbers(sheet.frame[column]):
        raise CapbiasError(
            f"{sheet.title}: {column} holds numbers of tokens, not texts.", "Decode them first.", "caption_column"
        )


def caption_columns(sheet: Sheet) -> tuple[list[str], list[str], list[str]]:
    """Columns of captions by their usual names, further columns of varied texts, and columns of people."""
    frame = sheet.frame
    words = {name: words_in(frame[name]) for name in frame}
    human = [name for name in frame if _base(name) in HUMAN and words[name] > 1.5]

    def filled(name: str) -> bool:
        cells = present(frame[name])
        if last_part(name) == "answer" and not words[name]:
            return False
        shown = bool(cells) and all(isinstance(cell, str | list) for cell in cells)
        return shown and (
            words[name] > 0 or (_base(name) in (*MODEL, "caption", "captions") and len(cells) > len(frame) / 2)
        )

    names = (*MODEL, *PLAIN)
    named = [name for name in frame if name not in human and _base(name) in names and filled(name)]
    other = [
        name for name in frame if name not in (*human, *named) and last_part(name) not in NEVER and words[name] >= 2.5
    ]
    other = [name for name in other if frame[name].map(str).nunique() > len(frame) / 5]
    return named, other, human


def label_columns(sheet: Sheet, wanted: Wanted) -> list[str]:
    """Columns with a usual name of an attribute and a value in them."""
    names = [name for name in sheet.columns if last_part(name) in wanted.names or name.casefold() in wanted.names]
    return [name for name in names if present(sheet.frame[name])]


def example(sheet: Sheet, column: str) -> str:
    """Two values of a column."""
    shown = [
        short(cell[0] if isinstance(cell, list) and cell else cell, 45) for cell in present(sheet.frame[column])[:2]
    ]
    return " / ".join(shown)


def roles_of(
    sheet: Sheet, kinds: Sequence[str], wanted: Sequence[Wanted], given: Given, others: Mapping[str, bool]
) -> Roles:
    """What the columns of a file are. kinds: what the user said that it holds. others: kind -> whether another file
    surely holds it. Raises Ask if more than one reading fits, and CapbiasError if none does."""
    fixed, columns = sheet.roles, sheet.columns
    caption = given.columns("caption_column", sheet.path, columns)
    reference = given.columns("reference_column", sheet.path, columns)
    labelled = given.columns("attribute_column", sheet.path, columns)
    roles = Roles(several=fixed.get("several", ""))
    if OBJECTS in kinds or SEGMENTS in kinds or BOXES in kinds:
        roles.objects = True
        if set(kinds) <= {OBJECTS, SEGMENTS, BOXES}:
            return roles
    if REFERENCES in kinds and CAPTIONS not in kinds and not reference:
        caption, reference = [], caption
    roles.captions, roles.references = caption, reference
    for one in wanted:
        pairs = [pair.partition("=")[::2] for pair in given.attribute]
        named = [column for name, column in pairs if name == one.name and column in columns]
        if named:
            roles.labels[one.name] = named
            for column in named:
                given.use("attribute", f"{one.name}={column}")
        if labelled and (len(wanted) == 1 or any(name in label_columns(sheet, one) for name in labelled)):
            roles.labels[one.name] = labelled
    labelled = labelled or [name for names in roles.labels.values() for name in names]
    if not (caption or reference or (labelled and not fixed.get("caption"))) or fixed.get("label"):
        _by_format(sheet, roles, wanted)
    nothing = not (roles.captions or roles.references or roles.labels)
    if nothing and not fixed.get("objects") and not (LABELS in kinds and len(set(kinds)) == 1):
        _by_name(sheet, kinds, roles, wanted, others)
    elif roles.captions and not roles.references and not fixed.get("caption"):
        roles.references = [name for name in caption_columns(sheet)[2] if name not in roles.captions]
    if {CAPTIONS, REFERENCES} <= set(kinds) and not (roles.captions and roles.references):  # given as both
        roles.captions = roles.references = roles.captions or roles.references
    if REFERENCES in kinds and CAPTIONS not in kinds and roles.captions and not reference:
        roles.captions, roles.references = [], roles.captions
    if CAPTIONS in kinds and REFERENCES not in kinds and roles.references and not roles.captions:
        roles.captions, roles.references = roles.references, []
    for one in wanted:
        if one.name not in roles.labels and not labelled and (found := label_columns(sheet, one)):
            roles.labels[one.name] = found
    if fixed.get("objects") and not roles.labels and (roles.objects or not kinds):
        roles.objects = True
        return roles
    texts = bool(roles.captions or roles.references)
    if texts and LABELS not in kinds and others.get(LABELS) and roles.labels:
        sheet.notes.append(
            f"{listed(name for names in roles.labels.values() for name in names)} not read: "
            "another file holds the labels"
        )
        roles.labels = {}
    keep = {CAPTIONS: "captions", REFERENCES: "references", LABELS: "labels"}
    if kinds:
        for kind, name in keep.items():
            beside = kind != CAPTIONS and CAPTIONS in kinds and roles.captions and not others.get(kind)
            if kind not in kinds and not beside:
                setattr(roles, name, {} if kind == LABELS else [])
    _check(sheet, kinds, roles, wanted, given)
    return roles


def _by_format(sheet: Sheet, roles: Roles, wanted: Sequence[Wanted]) -> None:
    """Columns whose role the format fixes."""
    fixed, columns = sheet.roles, sheet.columns
    if isinstance(fixed.get("label"), dict):
        for one in wanted:
            if names := fixed["label"].get(one.name):
                roles.labels[one.name] = names
    if isinstance(fixed.get("label"), list) and (names := [name for name in fixed["label"] if name in columns]):
        labels = {label for label in _all_labels(sheet, names[0]) if isinstance(label, str | int | float)}
        fitting = [one for one in wanted if len(wanted) == 1 or any(map(one.value_of, labels))]
        for one in fitting[:1]:
            roles.labels.setdefault(one.name, names)
    for key, target in (("caption", roles.captions), ("reference", roles.references)):
        for name in fixed.get(key, ()):
            if name in columns and not target:
                target.append(name)
            elif not target:
                inner = [each for each in columns if each.startswith(f"{name}.") and words_in(sheet.frame[each]) > 1.5]
                usual = [each for each in inner if _base(each) in (*PLAIN, *MODEL)]
                if len(inner) == 1 or len(usual) == 1:
                    target.append((usual or inner)[0])
                elif inner:
                    inner.sort(key=lambda each: words_in(sheet.frame[each]))
                    options = [Option({"caption_column": (each,)}, example(sheet, each)) for each in inner]
                    raise Ask(
                        f"{sheet.title}: its captions are objects of several fields. Which field is the caption?",
                        *options,
                    )


def _by_name(
    sheet: Sheet, kinds: Sequence[str], roles: Roles, wanted: Sequence[Wanted], others: Mapping[str, bool]
) -> None:
    """Columns by their usual names. Raises Ask if several columns of texts may hold the captions."""
    named, other, human = caption_columns(sheet)
    labels = any(label_columns(sheet, one) for one in wanted)
    people = REFERENCES in kinds and CAPTIONS not in kinds
    if people and human and not named:
        roles.references = human
        return
    if labels and not named and not (other and CAPTIONS in kinds):
        roles.references = human if human and not other else []
        return
    if not kinds and _are_objects(sheet) and not any(label_options(sheet, one) for one in wanted):
        roles.objects = True
        return
    loose = [name for name in other if name not in sheet.fields or any(name.startswith(each) for each in named)]
    model = [name for name in named if _base(name) in MODEL]
    if len(named) == 1 and not loose:
        (roles.references if people else roles.captions).append(named[0])
        if human and not people:
            roles.references = human
    elif len(model) == 1 and len(named) == 1 and not [name for name in loose if name not in human]:
        roles.captions, roles.references = model, human
    elif named or other:
        _ask_captions(sheet, named, other, human, people, others)
        roles.references = [*named, *other]
    elif human:
        roles.references = human


def _are_objects(sheet: Sheet) -> bool:
    others = {last_part(name) for name in sheet.columns}
    return is_boxes(sheet) or bool(others & {"objects", "object", "categories"}) and not caption_columns(sheet)[0]


def _ask_captions(
    sheet: Sheet, named: list[str], other: list[str], human: list[str], people: bool, others: Mapping[str, bool]
) -> None:
    """Asks which columns of texts are the captions; returns if those of people are all that is left."""
    columns = [*other, *named] if not people else [*named, *other]
    if len({name.rpartition(".")[0] for name in columns}) == 1 and "." in columns[0]:  # fields of one object
        columns.sort(key=lambda name: words_in(sheet.frame[name]))
    if people and not any(_base(name) in MODEL for name in columns):
        return
    first = _base(columns[0])
    alike = len(columns) > 2 and first not in MODEL and all(_base(name) == first for name in columns)
    one_by_one = [Option({"caption_column": (name,)}, f"one captioner: {example(sheet, name)}") for name in columns]
    all_columns = {"caption_column": tuple(columns)}
    of_people = all_columns if people else {"references": (sheet.path,), "reference_column": tuple(columns)}
    written = Option(of_people, f"all {len(columns)} columns are captions by people")
    each = [Option(all_columns, f"a captioner each: {listed(columns, 4)}")] if len(columns) > 1 else []
    plain_names = [name for name in columns if HUMAN_FILE.search(name)]
    plain_names = plain_names or [name for name in named if _base(name) in PLAIN]
    plain_names = [] if len(plain_names) > 1 and all(_base(name) == first for name in plain_names) else plain_names
    models = tuple(name for name in columns if name not in plain_names)
    mixed = []
    if plain_names and models:
        shown = f"{listed(plain_names)} by people, a captioner each: {listed(models, 4)}"
        mixed = [Option({"caption_column": models, "reference_column": tuple(plain_names)}, shown)]
    best = [written] if others.get(CAPTIONS) or alike else []
    single = one_by_one[: 2 if mixed else 3]
    captioners = [*each, *single] if others.get(REFERENCES) and not mixed else [*single, *each]
    rest = [option for option in (*mixed, *captioners, written) if option not in best]
    raise Ask(
        f"{sheet.title}: which are the captions? Its columns of texts are {listed(columns, 8)}, "
        "not one alone with a usual name.",
        *best,
        *rest,
    )


def _check(sheet: Sheet, kinds: Sequence[str], roles: Roles, wanted: Sequence[Wanted], given: Given) -> None:
    """Raises Ask or CapbiasError if a file does not hold what it was given as, or nothing that is known."""
    for name in (*roles.captions, *roles.references):
        check_tokens(sheet, name)
    for one in wanted:
        columns = roles.labels.get(one.name, ())
        hot = len(columns) > 1 and all("=" in name for name in columns)
        tables = any(pair.startswith(f"{one.name}=") for pair in given.attribute)  # a table each
        if len(columns) > 1 and not hot and not given.several and not tables:
            raise _ask_labels(sheet, one, columns)
    texts = bool(roles.captions or roles.references)
    if not texts and not roles.labels and not roles.objects and (not kinds or LABELS in kinds):
        bare = LABELS in kinds and not any(one.needed for one in wanted)  # which columns are labels is said later
        for one in wanted:
            if options := label_options(sheet, one):
                raise Ask(f"{sheet.title}: no column has a usual name of {one.name}. Which holds the labels?", *options)
        if bare:
            return
        for one in wanted:
            if one.attribute is None and nearest(one.name, known := [*known_attributes(), *sheet.columns]):
                raise unknown_name("attribute or column", one.name, known)
        names = " or ".join(one.name for one in wanted) or "an attribute"
        raise CapbiasError(
            f"{sheet.title} ({sheet.format}) has no column of {'labels' if kinds else 'captions and none'} of {names}.",
            f"Its columns are {listed(sheet.columns)}. Name the columns to read.",
            *(() if kinds else ("caption_column",)),
            "attribute_column",
        )
    for kind, held in ((CAPTIONS, roles.captions), (REFERENCES, roles.references), (LABELS, roles.labels)):
        if kind in kinds and not held and not (kind == LABELS and not any(one.needed for one in wanted)):
            holds = [
                each for each, names in ((CAPTIONS, roles.captions), (LABELS, roles.labels)) if names and each != kind
            ]
            what = kind_title(holds[0]) if holds else "none"
            raise CapbiasError(
                f"{sheet.title} holds no {kind_title(kind)} ({sheet.format} with the columns {listed(sheet.columns)}).",
                f"It was given as {kind}{f' and holds {what}' if holds else ''}. Name its column, or another file.",
                kind,
            )


# labels


def _is_flag(cells: Sequence) -> bool:
    values = {str(cell).strip().lower() for cell in present(cells)}
    return bool(values) and values <= {"true", "false", "0", "1", "yes", "no", "0.0", "1.0"}


def label_options(sheet: Sheet, wanted: Wanted) -> list[Option]:
    """Columns that may hold the labels of an attribute, the best first."""
    attribute, frame = wanted.attribute, sheet.frame
    if attribute is None:
        return []
    options: list[tuple[float, Option]] = []
    hot: dict[str, str] = {}
    for name in sheet.columns:
        cells = present(frame[name])
        value = value_of_name(attribute, last_part(name)) or wanted.value_of(re.split(r"[._ -]", name)[-1])
        if value and _is_flag(cells):
            hot.setdefault(value, name)
    if len(hot) > 1:
        columns = tuple(f"{value}={name}" for value, name in hot.items())
        options.append((3.0, Option({"attribute_column": columns}, "true or 1 in a column means its value")))
    for name in sheet.columns:
        cells = _all_labels(sheet, name)
        if not all(isinstance(label, str | int | float) for label in cells):
            continue
        counts = Counter(str(label) for label in cells)
        if not 2 <= len(counts) <= MOST_LABELS:
            continue
        value = value_of_name(attribute, last_part(name))
        ones = [label for label in counts if label.lower() in ("1", "true", "yes", "1.0")]
        if value and ones and len(counts) >= 2 and len(attribute.values) == 2 and len(hot) < 2:
            other = next(each for each in attribute.values if each != value)
            zeros = [label for label in counts if label.lower() in ("0", "-1", "false", "no", "0.0", "-1.0")]
            if zeros:
                pairs = (f"{wanted.name}:{ones[0]}={value}", f"{wanted.name}:{zeros[0]}={other}")
                effect = f"{ones[0]} is {value} ({counts[ones[0]]:,}), {zeros[0]} is {other} ({counts[zeros[0]]:,})"
                options.append((2.5, Option({"attribute_column": (name,), "map": pairs}, effect)))
            continue
        known = sum(number for label, number in counts.items() if wanted.value_of(label)) / max(1, len(cells))
        named = is_about(attribute, name)
        if (known > 0.5 or named) and not (_is_flag(cells) and not named):
            words = set(re.split(r"[._ -]", name.lower()))
            best = 1.0 * bool(
                words & {"majority", "consensus", "final", "gold", "true", "label"}
            ) - 2 * is_about_labeller(name)
            shown = ", ".join(f"{label} {number:,}" for label, number in counts.most_common(4))
            options.append((known + best, Option({"attribute_column": (name,)}, shown)))
    single = [
        option
        for score, option in options
        if "map" not in option.answer and len(option.answer["attribute_column"]) == 1 and score >= 0.5
    ]
    columns = tuple(option.answer["attribute_column"][0] for option in single)
    if len(columns) > 1 and all(_stem(first) == _stem(second) for first, second in pairwise(columns)):
        options.append(
            (
                4.0 if len(columns) > 2 else 0.1,
                Option({"attribute_column": columns, "several": ("majority",)}, "the majority of them"),
            )
        )
    options.sort(key=lambda pair: -pair[0])
    return [option if wanted.needed else _of_import(wanted.name, option) for _, option in options]


def _of_import(name: str, option: Option) -> Option:
    """An answer where several attributes are read: `attribute` names the column."""
    columns = option.answer["attribute_column"]
    more = {key: values for key, values in option.answer.items() if key not in ("attribute_column", "several")}
    return Option({"attribute": tuple(f"{name}={column}" for column in columns), **more}, option.effect)


def _stem(column: str) -> str:
    name = last_part(column)
    return re.sub(r"[\d_ -]+", "", name) if re.search(r"\d", column) else name.partition("_")[0]


def _ask_labels(sheet: Sheet, wanted: Wanted, columns: Sequence[str]) -> Ask:
    """The question which of several columns holds an attribute."""
    options = []
    for name in columns:
        counts = Counter(map(str, _all_labels(sheet, name))).most_common(4)
        shown = ", ".join(f"{label} {number:,}" for label, number in counts)
        options.append(Option({"attribute_column": (name,)}, shown))
    options.append(Option({"attribute_column": tuple(columns), "several": ("majority",)}, "the majority of them"))
    options = options if wanted.needed else [_of_import(wanted.name, option) for option in options]
    return Ask(f"{sheet.title}: several columns may hold labels of {wanted.name}. Which?", *options)


def _all_labels(sheet: Sheet, column: str) -> list:
    """The labels in a column, also those in lists."""
    return [label for cell in present(sheet.frame[column]) for label in (cell if isinstance(cell, list) else [cell])]


# rows


def selected(sheet: Sheet, given: Given, wanted: Sequence[Wanted]) -> Sheet:
    """The rows that the user asks for. Raises Ask for a column that looks like the status of a review, and CapbiasError
    if no row is left. Numbers such as `rank=min` choose among captions of an image, later."""
    asked = set()
    for rule, column, value in given.rows_of(sheet.path, sheet.columns):
        asked.add(column)
        if value in ("min", "max"):
            continue
        given.use("rows", rule)
        if value == "*":
            continue
        keep = sheet.frame[column].map(cell_text).isin(value.split("|"))
        if not keep.any():
            known = listed(dict.fromkeys(str(cell) for cell in present(sheet.frame[column])), 6)
            raise CapbiasError(f"No row of {sheet.title} has {column} {value}.", f"Known: {known}.", "rows")
        sheet = sheet.kept(keep)
        sheet.notes.append(
            f"{keep.sum():,} of {len(keep):,} rows read, those where {column} is {value.replace('|', ' or ')}"
        )
    labels = {name for one in wanted for name in label_columns(sheet, one)} | set(
        map(str, sheet.roles.get("label") or ()) if isinstance(sheet.roles.get("label"), list) else ()
    )
    kept = sheet.roles.get("keep", ("",))[0]
    for name in sheet.columns:
        if name in asked | labels | {kept} or last_part(name) in CAPTIONER or not is_scalar(sheet.frame[name]):
            continue
        counts = Counter(str(cell) for cell in present(sheet.frame[name]))
        values = {value.lower() for value in counts}
        known = values <= {*GOOD, *BAD} and values & {*BAD}
        flags = last_part(name) in STATUS and values <= {"true", "false", "0", "1", "yes", "no", "1.0", "0.0"}
        mostly = last_part(name) in STATUS and len(counts) <= 8 and values & {*BAD}
        if 1 < len(counts) <= 8 and (known or flags or mostly):
            true = ("false", "0", "no", "0.0") if last_part(name) in NEGATIVE else ("true", "1", "yes", "1.0")
            good = [value for value in counts if value.lower() in (true if flags else GOOD)] or [
                counts.most_common(1)[0][0]
            ]
            shown = ", ".join(f"{value} {number:,}" for value, number in counts.most_common(6))
            raise Ask(
                f"{sheet.title}: the column {name} looks like the status of a review ({shown}). Which rows count?",
                Option({"rows": (f"{name}={'|'.join(good)}",)}, f"{sum(counts[value] for value in good):,} rows"),
                Option({"rows": (f"{name}=*",)}, "all rows"),
            )
    return sheet
