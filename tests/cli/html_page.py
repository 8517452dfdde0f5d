# SPDX-License-Identifier: BSD-2-Clause
"""Checks the pages that commands write: elements are closed in their order, and nothing in them
comes from elsewhere or is executed."""
import html.parser

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(html.parser.HTMLParser):
    """Checks that elements are closed in their order and ids are unique."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.links = [], set(), [], []
        self.figures, self.heads, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        for link in self.links:
            assert link[1:] in self.ids, f"{link} leads nowhere"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        assert tag not in ("script", "link", "iframe", "object", "img"), tag
        for name, value in attrs.items():
            assert not name.startswith("on"), f"{tag} {name}"
            if name in ("href", "src", "xlink:href"):
                assert value.startswith("#"), f"{tag} {name}={value}"
                self.links.append(value)
        if "id" in attrs:
            assert attrs["id"] not in self.ids, f"id {attrs['id']} twice"
            self.ids.add(attrs["id"])
        if tag == "svg":
            for part in attrs["aria-labelledby"].split():
                self.links.append("#" + part)
            assert "viewbox" in attrs and "width" not in attrs, attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> after {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if "svg" not in self.open:
            self.text += data
        if self.open and self.open[-1] == "span" and "h3" in self.open:
            self.figures.append(data)
        if self.open and self.open[-1] == "h2":
            self.heads.append(data)


def page_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for scheme in ("http:", "https:", "//", "@import", "javascript:"):
        assert scheme not in text.replace("http-equiv", ""), scheme
    return Page(text), text
