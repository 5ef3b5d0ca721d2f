"""Sphinx extension: the first mention of a word of the glossary in each chapter is a link to it.

The role ``term`` would do the same by hand, and be raw text in Jupyter. Here the words are found when the book is
built, so that a chapter stays plain text, and a word that moves takes its link along.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GLOSSARY = Path(__file__).resolve().parent.parent / "book" / "glossary.md"
CHAPTERS = "notebooks/"
# Words that texts also use in their everyday sense, or in another one: the bias of an estimate, a score for a metric.
EVERYDAY = {"bias", "covariance", "mixing", "score", "shift", "width", "window", "ridge", "accuracy", "imbalance"}
# Not within links, formulas, code, headings and captions, nor in what a cell printed.
CLOSED = (
    nodes.reference,
    addnodes.pending_xref,
    nodes.literal,
    nodes.math,
    nodes.math_block,
    nodes.title,
    nodes.caption,
)


def words(text):
    """The words of the glossary, in the source of its page, the longest first."""
    inside = text.split("```{glossary}")[1].split("```")[0]
    found = re.findall(r"^(\S.*)$", inside, re.MULTILINE)
    return sorted((word for word in found if word not in EVERYDAY), key=len, reverse=True)


def pattern(some):
    """What matches one of these words, in the plural too; with a capital where a sentence begins."""
    each = "|".join(f"(?:{re.escape(word)}|{re.escape(word[0].upper() + word[1:])})" for word in some)
    return re.compile(rf"(?<![\w-])({each})(?:s|es)?(?![\w-])")


def is_open(text):
    """Whether a piece of text may hold a link: it stands in a paragraph, and in nothing that is closed."""
    node, paragraph = text.parent, False
    while node is not None:
        if isinstance(node, CLOSED) or "cell_output" in node.get("classes", []):
            return False
        paragraph = paragraph or isinstance(node, nodes.paragraph)
        node = node.parent
    return paragraph


def link(shown, word, docname):
    """What the role ``term`` makes."""
    inner = nodes.inline("", shown, classes=["xref", "std", "std-term", "rbal-term"])
    return addnodes.pending_xref(
        "", inner, refdomain="std", reftype="term", refexplicit=False, reftarget=word, refdoc=docname, refwarn=True
    )


class LinkTerms(SphinxTransform):
    """Make a link of each first mention."""

    default_priority = 750  # after figures have been lifted, whose places go with their words

    def apply(self, **kwargs):
        """Go through the text once; each word that was found is not looked for again."""
        if not self.env.docname.startswith(CHAPTERS):
            return
        self.env.note_dependency(str(GLOSSARY))
        left = words(GLOSSARY.read_text(encoding="utf-8"))
        some = pattern(left)
        for text in [node for node in self.document.findall(nodes.Text) if is_open(node)]:
            pieces, rest = [], str(text)
            while left and (found := some.search(rest)):
                word = next(w for w in left if w.lower() == found[1].lower())
                left.remove(word)
                some = pattern(left)
                pieces += [nodes.Text(rest[: found.start()]), link(found[0], word, self.env.docname)]
                rest = rest[found.end() :]
            if pieces:
                text.parent.replace(text, [*pieces, nodes.Text(rest)])


def setup(app):
    """Register with Sphinx."""
    app.add_transform(LinkTerms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
