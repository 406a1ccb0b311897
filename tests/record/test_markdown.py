"""Names from the data in Markdown."""

from emea.record.markdown import escape_markup, markdown_table


def test_markup_in_names_is_text() -> None:
    table = markdown_table(["a", "b"], [["<script>x</script>|y", "1 < 2 <- 3\nnext"]])
    assert table.endswith("| &lt;script>x&lt;/script>\\|y | 1 < 2 <- 3<br>next |")
    assert escape_markup("<!-- a --> <?x") == "&lt;!-- a --> &lt;?x"
