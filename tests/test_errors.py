from regal.errors import ModelError, summary_of


def test_a_message_is_one_printable_line_whatever_names_it_quotes() -> None:
    error = ModelError("inputs of 'a\n\tb\x00\u200bc' name tensor 5;\r\n there are 1")
    assert str(error) == "inputs of 'a b??c' name tensor 5; there are 1"


def test_a_summary_is_the_kind_and_the_first_line_however_much_is_said() -> None:
    assert (
        summary_of(ValueError("\nno kernel: these\nCPU: here\n")) == "ValueError: no kernel: these"
    )
    assert summary_of(KeyError()) == "KeyError: "
    assert len(summary_of(TypeError(10_000 * "x"))) == len("TypeError: ") + 200
