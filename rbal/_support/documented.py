"""Links from estimators to the book."""

BOOK = "https://rbal-book.github.io/rbal/"


class Documented:
    """Estimator whose diagram in a notebook links what the book says of it: the API page, or where it is advised."""

    _doc_link_module = "rbal"
    _doc_link_template = BOOK + "{place}"

    def _doc_link_url_param_generator(self):
        import rbal

        name = type(self).__name__
        return {"place": f"book/api.html#rbal.{name}" if name in rbal.__all__ else "notebooks/your_data.html"}
