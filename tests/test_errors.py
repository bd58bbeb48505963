from regal.errors import ModelError


def test_a_message_is_one_printable_line_whatever_names_it_quotes() -> None:
    error = ModelError("inputs of 'a\n\tb\x00\u200bc' name tensor 5;\r\n there are 1")
    assert str(error) == "inputs of 'a b??c' name tensor 5; there are 1"
