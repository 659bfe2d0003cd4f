from evenhand.core.records import Group, Mention, Prompt
from evenhand.store.prompt_rows import interleave_groups, read_prompt_rows, write_prompt_rows


def _prompt(group, number, **more):
    return Prompt.create("s", f"{group} {number}", groups=(Group("a", group),), cluster=f"c{number}", **more)


def test_prompts_survive_the_table():
    prompts = [
        _prompt("x", 1, mentions=(Mention("she", "Person", whole_word=False),), fills={"slot": "é"}),
        _prompt("y", 2, template_id="t", meta={"context": "respect"}, source="page"),
    ]
    assert read_prompt_rows(write_prompt_rows(prompts)) == prompts


def test_no_prompts_make_an_empty_table():
    assert read_prompt_rows(write_prompt_rows([])) == []


def test_spread_takes_groups_in_turn_and_keeps_their_order():
    prompts = [_prompt("x", i) for i in range(3)] + [_prompt("y", i) for i in range(2)]
    assert [prompt.text for prompt in interleave_groups(prompts)] == ["x 0", "y 0", "x 1", "y 1", "x 2"]


def test_the_same_text_in_two_groups_is_two_prompts():
    one, two = _prompt("x", 1), Prompt.create("s", "x 1", groups=(Group("a", "y"),), cluster="c1")
    assert one.text == two.text
    assert one.id != two.id


def test_prompts_without_groups_or_mentions_come_back_as_they_went():
    plain = Prompt.create("s", "text", groups=(), cluster="c")
    full = Prompt.create(
        "s",
        "other",
        groups=(Group("a", "x"), Group("b", "y")),
        cluster="c",
        mentions=(Mention("one"), Mention("two", "Person", whole_word=False)),
    )
    for prompts in ([], [plain], [plain, full, plain]):
        assert read_prompt_rows(write_prompt_rows(prompts)) == prompts
