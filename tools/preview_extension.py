"""Sphinx extension: previews of figures, equations, citations and glossary terms where a link leads to one."""


def setup(app):
    """Load the script and its style sheet on every page."""
    app.add_js_file("previews.js", loading_method="defer")
    app.add_css_file("previews.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
