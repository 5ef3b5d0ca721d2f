"""Sphinx extension: figures of cells for wide and narrow pages in light and dark; key numbers hidden; tied punctuation.

A figure of rbal_book.plotting is one SVG with a narrow version and a description inside. Here it becomes four files,
two sizes in two palettes, of which a page shows one; the description becomes its alternative text.
"""

import colorsys
import html
import posixpath
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.osutil import relative_uri

DARK_GROUND, DARK_INK = "#121212", "#e8e8e8"  # of the theme's pages in the dark, and what is black in the light
CONTRAST = 4.5  # of a colour with the dark ground, at least
PHONE = "(max-width: 720px)"  # pages that get the narrow version
KEY_NUMBERS = "tag_nbval-check-output"
CLOSING = re.compile(r"[,.;:!?)\]’”%…]+")
OPENING = re.compile(r"[(\[‘“]+$")


def luminance(rgb):
    """Relative luminance of a colour, as the guidelines for accessible pages define it."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def rgb_of(color):
    """Three numbers from 0 to 1 of a colour as #rrggbb."""
    return tuple(int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))


def contrast(one, other):
    """Contrast of two colours as #rrggbb, from 1 to 21."""
    low, high = sorted(luminance(rgb_of(color)) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def in_the_dark(color):
    """Give the colour #rrggbb for the dark: greys and pale ones turned round, others as light as can be told apart."""
    color = color.lower()
    if color == "#ffffff":
        return DARK_GROUND
    hue, light, saturation = colorsys.rgb_to_hls(*rgb_of(color))
    if saturation < 0.1 or light > 0.9:
        return written(hue, 0.91 - 0.8 * light, saturation)
    while contrast(found := written(hue, light, saturation), DARK_GROUND) < CONTRAST:
        light += 0.01
    return found


def written(hue, light, saturation):
    """Colour as #rrggbb."""
    return "#" + "".join(f"{round(255 * value):02x}" for value in colorsys.hls_to_rgb(hue, light, saturation))


def without_ground(svg):
    """Take away the white behind the figure and its panels."""
    return re.sub(r'<g id="ground-\d+">.*?</g>\s*', "", svg, flags=re.DOTALL)


def for_the_dark(svg):
    """Give every colour its counterpart for the dark. Pictures inside keep theirs, and so do #fefefe and #010101."""

    def counterpart(found):
        color = found[2].lower()
        return found[1] + (color if color in ("#fefefe", "#010101") else in_the_dark(color))

    svg = re.sub(r"((?:fill|stroke|stop-color|color): ?)(#[0-9a-fA-F]{6})\b", counterpart, svg)
    # what matplotlib draws in plain black has no colour of its own
    return svg.replace("<svg ", f'<svg fill="{DARK_INK}" ', 1)


def parts(svg):
    """Wide version, narrow version (or None), and description of a figure of rbal_book.plotting."""
    found = re.search(
        r"<metadata><rbal-words>(.*?)</rbal-words>(?:<rbal-narrow>(.*?)</rbal-narrow>)?</metadata>\s*", svg, re.S
    )
    narrow = found[2] and html.unescape(found[2])
    return svg[: found.start()] + svg[found.end() :], narrow, html.unescape(found[1])


def size(svg):
    """Width and height in pixels of a page."""
    return tuple(round(float(value) * 4 / 3) for value in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())


def versions(svg):
    """Map the ending of a file's name to its text and size, and give the description."""
    wide, narrow, words = parts(svg)
    found = {}
    for name, text in (("", wide), ("-narrow", narrow)):
        if text:
            clear = without_ground(text)
            found[f"{name}-light"] = (clear, size(text))
            found[f"{name}-dark"] = (for_the_dark(clear), size(text))
    return found, words


def picture(theme, places, sizes, alt):
    """HTML of the figure in one palette."""
    wide, narrow = f"-{theme}", f"-narrow-{theme}"
    width, height = sizes[wide]
    source = ""
    if narrow in places:
        w, h = sizes[narrow]
        source = f'<source media="{PHONE}" srcset="{places[narrow]}" width="{w}" height="{h}">'
    return (
        f'<picture class="rbal-{theme}">{source}<img class="rbal-img dark-light" src="{places[wide]}" width="{width}" '
        f'height="{height}" loading="lazy" alt="{html.escape(alt, quote=True)}"></picture>'
    )


class Figures(SphinxPostTransform):
    """Put the four versions of a figure in the place of the one that its cell made."""

    default_priority = 790  # before captions stand in for descriptions
    formats = ("html",)

    def run(self, **kwargs):
        """Visit each image that a cell made."""
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.app.srcdir, image["uri"].lstrip("/"))
            if path.suffix == ".svg" and path.exists() and "<rbal-words>" in (text := path.read_text(encoding="utf-8")):
                image.replace_self(self.four(image, path, text))

    def four(self, image, path, text):
        """Write the files and the HTML that shows one of them."""
        found, words = versions(text)
        folder = relative_uri(self.app.builder.get_target_uri(self.env.docname), self.app.builder.imagedir)
        places = {}
        for ending, (content, _) in found.items():
            file = path.with_name(f"{path.stem}{ending}.svg")
            file.write_text(content, encoding="utf-8")
            name = file.relative_to(self.app.srcdir).as_posix()
            copied = self.env.images.add_file(self.env.docname, name)
            self.app.builder.images[name] = copied
            places[ending] = posixpath.join(folder, copied)
        sizes = {ending: known for ending, (_, known) in found.items()}
        alt = image.get("alt") or self.alternative(image, words)
        inner = "".join(picture(theme, places, sizes, alt) for theme in ("light", "dark"))
        return nodes.raw("", f'<span class="rbal-figure">{inner}</span>', format="html")

    def alternative(self, image, words):
        """Description of the figure; its caption where there is nothing to describe, as in a gallery."""
        holder = image.parent
        while holder is not None and not isinstance(holder, nodes.figure):
            holder = holder.parent
        caption = next(holder.findall(nodes.caption), None) if holder is not None else None
        if caption is not None and len(words) < 40:
            return " ".join([*filter(None, [words]), *caption.astext().split()])
        return words or "A figure without labels."


class HideKeyNumbers(SphinxPostTransform):
    """Leave the cell out in which a chapter prints its key numbers for the tests."""

    default_priority = 780
    formats = ("html",)

    def run(self, **kwargs):
        """Remove tagged cells."""
        for node in list(self.document.findall(nodes.container)):
            if KEY_NUMBERS in node.get("classes", []) and node.parent is not None:
                node.parent.remove(node)


class TiePunctuation(SphinxPostTransform):
    """Keep what closes a phrase on the line of the formula before it, and what opens it on that of the one after."""

    default_priority = 785
    formats = ("html",)

    def run(self, **kwargs):
        """Visit each formula within a line."""
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            at = parent.index(formula)
            before, after = parent[at - 1] if at else None, formula.next_node(descend=False, siblings=True)
            opening = OPENING.search(before.astext()) if isinstance(before, nodes.Text) else None
            closing = CLOSING.match(after.astext()) if isinstance(after, nodes.Text) else None
            if opening or closing:
                tied = nodes.inline(classes=["rbal-tied"])
                parent.replace(formula, tied)
                if opening:
                    parent.replace(before, nodes.Text(before.astext()[: opening.start()]))
                    tied += nodes.Text(opening[0])
                tied += formula
                if closing:
                    parent.replace(after, nodes.Text(after.astext()[closing.end() :]))
                    tied += nodes.Text(closing[0])


def setup(app):
    """Register with Sphinx."""
    for transform in (HideKeyNumbers, TiePunctuation, Figures):
        app.add_post_transform(transform)
    app.add_js_file("figures.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
