"""The front page: does a captioner amplify bias? And the web server, which `streamlit run` finds here as `app`."""

from __future__ import annotations


def main() -> None:
    from pages.ui.answer import answer_page
    from pages.ui.entry import draw

    draw(answer_page)


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    main()
elif __name__ == "app":
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    from pages.ui.guard import Guard

    app = App("app.py", middleware=[Middleware(Guard)])
