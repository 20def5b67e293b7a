"""The lab in a real browser: what a person does, and what they then see."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]
Keep = Callable[[Any, str], None]
CITY = '{"city":"Oslo","unit":"celsius"}'


def row(page: Any, text: str) -> list[str]:
    """The figures of a token's row: without the mask, with it."""
    found = page.locator("#tokens tbody tr").filter(has=page.get_by_role("button", name=text, exact=True))
    return [cell.strip() for cell in found.locator("td:not(.drawn-column)").all_inner_texts()]


def masked_row(page: Any, text: str) -> list[str]:
    return row(page, f"{text}, masked")


def written(page: Any) -> str:
    return "".join(page.locator("#tape .chip:not(.stop)").all_inner_texts()).replace("␣", " ")


def figure(page: Any, name: str) -> str:
    text: str = page.locator(f"[data-figure={name}] dd").first.inner_text()
    return text


def take(page: Any, text: str) -> None:
    """Takes a token, and waits until it's there."""
    before = page.locator("#tape .chip").count()
    page.locator("#tokens").get_by_role("button", name=text, exact=True).click()
    page.wait_for_selector(f"#tape .chip:nth-of-type({before + 1})")


def test_refund_and_ask_become_two_thirds_and_one(open_lab: Open, keep: Keep) -> None:
    page = open_lab()
    assert row(page, "refund") == ["0.300", "0.667"]
    assert row(page, "ask") == ["0.150", "0.333"]
    assert masked_row(page, "de") == ["0.500", "masked"]
    assert page.locator("tr", has_text="delete").locator(".toward").inner_text() == "lete"
    assert figure(page, "retained") == "0.450"
    assert page.locator("#place").inner_text() == "/anyOf/0/properties/action"
    marked = page.locator("#editor .mark-here").evaluate_all("all => all.map(e => e.innerText).join('')")
    assert '"const": "refund"' in marked
    assert page.locator("#frames li").count() == 3
    keep(page, "1-refund")


def test_the_right_key_gets_all_the_mass(open_lab: Open, keep: Keep) -> None:
    page = open_lab("#example=city")
    page.goto(page.url)  # a link without tokens begins at nothing
    page.select_option("#example", "name")
    page.wait_for_selector("#place:has-text('regex')")
    page.select_option("#example", "city")
    page.wait_for_selector("#tape .chip:nth-of-type(5)")
    assert row(page, "unit") == ["0.610", "1.000"]
    assert masked_row(page, "country") == ["0.240", "masked"]
    assert figure(page, "completions") == "2" and figure(page, "may-end") == "no"
    keep(page, "2-city")


def test_typing_a_schema_seeing_a_diagnostic_and_mending_it(open_lab: Open, keep: Keep) -> None:
    page = open_lab()
    area = page.get_by_label("Source of the constraint")
    area.fill('{"type": "object", "properties": {"n": {"type": "integr"}}}')
    page.wait_for_selector("#compile-status.refused")
    found = page.locator(".diagnostic")
    assert found.locator("code").inner_text() == "INVALID_SOURCE"
    assert found.locator(".diagnostic-head button").inner_text() == "/properties/n/type"
    line, carets = found.locator(".excerpt").inner_text().split("\n")
    assert line[carets.index("^") : carets.rindex("^") + 1] == '"integr"'
    assert page.locator("#editor .mark-error").inner_text() == '"integr"'
    found.locator("button").click()
    assert area.evaluate("a => a.value.slice(a.selectionStart, a.selectionEnd)") == '"integr"'
    keep(page, "3-diagnostic")
    page.keyboard.type('"integer"')
    page.wait_for_selector("#compile-status.done")
    assert page.locator(".diagnostic.error").count() == 0 and page.locator(".mark-error").count() == 0
    area.fill('{"type": "object"')
    page.wait_for_selector("#compile-status.refused")
    assert "not JSON" in page.locator(".diagnostic").inner_text().lower().replace("json", "JSON")


def test_a_pattern_and_its_diagnostic(open_lab: Open) -> None:
    page = open_lab("#example=name")
    page.get_by_label("Source of the constraint").fill("(ab")
    page.wait_for_selector("#compile-status.refused")
    assert page.locator(".diagnostic .excerpt").inner_text().split("\n") == ["(ab", "^^^"]
    page.get_by_label("Source of the constraint").fill("(ab)+")
    page.wait_for_selector("#compile-status.done")
    page.wait_for_selector("#ways .way")
    assert page.locator("#ways .way").inner_text() == "ab" and figure(page, "completions") == "∞"


def test_stepping_to_a_complete_object_and_back(open_lab: Open, keep: Keep) -> None:
    page = open_lab("#example=city")
    for words in ("open brace quote", "city", "quote colon quote"):
        take(page, words)
    assert page.locator("#place").inner_text() == "/properties/city"
    for words in ("Oslo", "quote comma quote", "unit", "quote colon quote"):
        take(page, words)
    for piece in ("ce", "ls", "i", "us", "quote close brace"):
        take(page, piece)
    assert written(page) == CITY and figure(page, "may-end") == "yes" and figure(page, "completions") == "1"
    take(page, "end of text")
    page.wait_for_selector("#judgement li[data-judge='Ajv, in this page']")
    verdicts = page.locator("#judgement li").evaluate_all("all => all.map(e => [e.dataset.judge, e.className])")
    assert verdicts == [
        ["Maskwright's automaton", "yes"],
        ["JSON parser, in the service", "yes"],
        ["jsonschema-rs, in the service", "yes"],
        ["Ajv, in this page", "yes"],
        ["facts", "unchecked"],
        ["permission", "unchecked"],
        ["effect", "unchecked"],
    ]
    assert figure(page, "may-end") == "ended"
    for name in ("Draw a token", "Run to the end", "Compare"):
        assert page.get_by_role("button", name=name).is_disabled()
    keep(page, "4-complete")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("#judgement", state="hidden")
    assert written(page) == CITY and figure(page, "may-end") == "yes"
    page.locator("#tape .chip").nth(2).click()
    page.wait_for_selector("#token-count:has-text('3 tokens')")
    assert written(page) == '{"city":"'
    page.get_by_role("button", name="Start over").click()
    page.wait_for_selector("#token-count:has-text('0 tokens')")
    assert page.get_by_role("button", name="Undo").is_disabled()


def test_with_and_without_the_mask(open_lab: Open, keep: Keep) -> None:
    page = open_lab()
    page.get_by_role("button", name="Compare").click()
    without, with_ = (page.locator(f"#comparison .{name}") for name in ("without", "with"))
    page.wait_for_selector("#comparison .with .verdicts li")
    assert "isn't legal" in without.locator(".said").inner_text()
    assert without.locator(".wrong").count() == 1
    assert with_.locator(".verdicts li.no").count() == 0 and with_.locator(".verdicts li.yes").count() == 4
    assert without.locator(".verdicts li.no").count() == 3
    keep(page, "5-compare")


def test_sampling_is_by_the_seed(open_lab: Open) -> None:
    page = open_lab("#example=tree&speaker=noise&seed=5&budget=20")
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_selector("#judgement:not([hidden])")
    first = written(page)
    assert page.locator("#tape .chip").count() <= 20
    json.loads(first)
    page.get_by_role("button", name="Start over").click()
    page.wait_for_selector("#token-count:has-text('0 tokens')")
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_selector("#judgement:not([hidden])")
    assert written(page) == first


def test_a_budget_closes_the_value_in_time(open_lab: Open, keep: Keep) -> None:
    page = open_lab("#example=refund&speaker=noise&seed=3&budget=24")
    assert "24 left" in page.locator("#budget-shown").inner_text()
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_selector("#judgement li[data-judge='Ajv, in this page'].yes")
    tokens = page.locator("#tape .chip").count()
    assert tokens <= 24
    for _ in range(3):
        page.get_by_role("button", name="Undo").click()
        page.wait_for_selector(f"#token-count:has-text('{(tokens := tokens - 1)} tokens')")
    keep(page, "6-budget")
    page.locator("#budget").fill("5")
    page.wait_for_selector("#budget-field.short")
    assert "too few" in page.locator("#budget-shown").inner_text()


def test_truncation_and_temperature_show_what_is_drawn_by(open_lab: Open) -> None:
    page = open_lab("#example=refund&tokens=" + open_lab().url.split("tokens=")[1].split("&")[0] + "&top_k=1")
    drawn = page.locator("#tokens tbody tr.legal td.drawn-column").all_inner_texts()
    assert drawn[0] == "1.000" and set(drawn[1:]) == {"0"}
    assert row(page, "refund") == ["0.300", "0.667"]


def test_a_link_restores_the_view(open_lab: Open) -> None:
    page = open_lab("#example=tree&speaker=noise&seed=9")
    for _ in range(3):
        count = page.locator("#tape .chip").count()
        page.get_by_role("button", name="Draw a token").click()
        page.wait_for_selector(f"#tape .chip:nth-of-type({count + 1})")
    page.get_by_label("Source of the constraint").fill('{"type": "array", "items": {"enum": ["réd", 1]}}')
    page.wait_for_selector("#compile-status:has-text('Compiled')")
    page.wait_for_selector("#token-count:has-text('0 tokens')")
    take(page, "open bracket")
    page.get_by_label("Find tokens with this text").fill('"')
    page.wait_for_url("**search=**")

    def state(of: Any) -> dict[str, Any]:
        return {
            "text": written(of),
            "source": of.locator("#source-text").input_value(),
            "table": of.locator("#tokens tbody").inner_text(),
            "figures": of.locator("#figures").inner_text(),
            "frames": of.locator("#frames").inner_text(),
            "artifact": of.locator("#artifact").inner_text().split("Digest")[1],
        }

    again = open_lab("#" + page.url.split("#")[1])
    again.wait_for_selector("#tape .chip")
    assert state(again) == state(page)
    assert "#" in page.url and "artifact=" in page.url


def test_a_broken_link_is_no_trouble(open_lab: Open) -> None:
    page = open_lab("#example=city&tokens=5.6.x.99999999&seed=-1&temperature=nan&artifact=" + "0" * 64)
    assert "another compiler" in page.locator("#notice").inner_text()
    assert page.locator("#tape .chip").count() == 0 and page.locator("#seed").input_value() == "1"
    page = open_lab("#source=!!!&kind=yaml", refused=True)
    page.get_by_role("button", name="Draw a token").click()
    page.get_by_label("Source of the constraint").fill("true")
    page.wait_for_selector("#compile-status.done")
    page.wait_for_selector("#tokens tbody tr.legal")


def test_a_masked_token_says_why(open_lab: Open) -> None:
    page = open_lab()
    page.get_by_role("button", name="de, masked").click(force=True)
    assert "masked" in page.locator("#say").inner_text() and page.locator("#tape .chip").count() == 3


def test_a_slow_compilation_shows_progress(open_lab: Open) -> None:
    page = open_lab("#example=city")
    held: list[Any] = []
    page.route("**/api/compile", lambda route: route.continue_() if held else held.append(route))
    area = page.get_by_label("Source of the constraint")
    area.fill('{"enum": ["a"]}')
    page.wait_for_selector("#compile-progress:not([hidden])")
    assert page.locator("#compile-status").inner_text().startswith("Compiling")
    area.fill('{"enum": ["a", "b"]}')
    held[0].continue_()
    page.wait_for_selector("#compile-progress", state="hidden")
    page.wait_for_selector("#compile-status.done")
    # What was typed meanwhile is compiled too, and it's what counts.
    page.wait_for_selector("[data-figure=completions] dd:text-is('2')")


@pytest.mark.parametrize("example", ["refund", "city", "tree", "conditional", "name", "sum", "list"])
def test_every_example_opens(open_lab: Open, example: str) -> None:
    page = open_lab()
    page.select_option("#example", "name" if example != "name" else "list")
    page.wait_for_selector(f"#frames:has-text('{'regex' if example != 'name' else 'root'}')")
    page.select_option("#example", example)
    page.wait_for_url(f"**example={example}**artifact=**")
    assert page.locator("#tokens tbody tr.legal").count() > 0 and page.locator(".diagnostic.error").count() == 0


def test_a_service_that_wants_a_token_is_told_one(open_lab: Open) -> None:
    page = open_lab("#example=city")
    sent: list[str] = []

    def answer(route: Any) -> None:
        sent.append(route.request.headers.get("authorization", ""))
        if sent[-1] == "Bearer good":
            route.continue_()
        else:
            route.fulfill(status=401, content_type="application/json", body='{"error": {"message": "no"}}')

    page.route("**/api/state", answer)
    page.get_by_role("button", name="Run to the end").click()
    for token in ("bad", "good"):
        page.wait_for_selector("#sign-in[open]")
        page.get_by_label("Token", exact=True).fill(token)
        page.get_by_role("button", name="Go on").click()
    page.wait_for_selector("#judgement:not([hidden])")
    assert sent == ["", "Bearer bad", "Bearer good"]
    page.evaluate("sessionStorage.clear()")


def test_an_artifact_that_was_forgotten_is_compiled_again(open_lab: Open) -> None:
    page = open_lab("#example=city")
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        if asked == ["state"]:
            gone = '{"error": {"reason": "UNKNOWN_ARTIFACT", "message": "gone"}}'
            route.fulfill(status=404, content_type="application/json", body=gone)
        else:
            route.continue_()

    page.route("**/api/*", answer)
    take(page, "open brace quote")
    assert asked[:3] == ["state", "compile", "state"]


# -- for everybody -----------------------------------------------------------------------------------------------------


def test_by_keyboard_alone(open_lab: Open) -> None:
    page = open_lab("#example=city")
    page.locator("#tokens button.token").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#token-count:has-text('1 token')")
    focused = page.evaluate_handle("document.activeElement").as_element()
    assert focused.get_attribute("class") == "token"
    page.keyboard.press("ArrowDown")
    assert page.evaluate_handle("document.activeElement").as_element().get_attribute("tabindex") == "0"
    page.keyboard.press("Backspace")
    page.wait_for_selector("#token-count:has-text('0 tokens')")
    assert "Back to the start" in page.locator("#say").inner_text()
    page.locator("body").press("Tab")
    page.keyboard.press("Tab")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_for_axe_to_complain_of(open_lab: Open, scheme: str, keep: Keep) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python isn't installed")
    page = open_lab("", color_scheme=scheme, bypass_csp=True)
    page.locator("#sampling summary").click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#comparison .with .verdicts li")
    keep(page, f"7-{scheme}")
    assert _violations(axe, page) == []
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_selector("#judgement li[data-judge='Ajv, in this page']")
    page.get_by_label("Source of the constraint").fill('{"type": "integr"}')
    page.wait_for_selector(".diagnostic")
    page.wait_for_timeout(300)
    assert _violations(axe, page) == []


def _violations(axe: Any, page: Any) -> list[str]:
    # What's only dimmed because its source doesn't compile is still readable for those who need contrast: not asked.
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    found = axe.Axe().run(page, context={"exclude": [[".stale #decode"], [".stale #machine"]]}, options=options)
    return [
        f"{v['id']}: {v['help']} {[n['target'] for n in v['nodes']][:3]}" for v in found.response["violations"]
    ]


@pytest.mark.parametrize("width", [360, 768, 1024])
def test_narrow_screens_do_not_scroll_sideways(open_lab: Open, width: int, keep: Keep) -> None:
    page = open_lab(width=width, height=800)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#comparison .with .verdicts li")
    assert page.locator("html").evaluate("e => e.scrollWidth") <= width
    keep(page, f"8-{width}")


# -- two judges --------------------------------------------------------------------------------------------------------


def test_ajv_and_the_matcher_agree_on_200_texts(open_lab: Open) -> None:
    """Texts drawn under the mask, and the same with something changed, written as the canonical form has it."""
    page = open_lab(bypass_csp=True)
    answers = page.evaluate(_JUDGE_BOTH)
    assert len(answers) == 200
    assert [a for a in answers if a["ajv"] != a["matcher"]] == []
    assert {a["ajv"] for a in answers if a["drawn"]} == {"yes"}
    assert sum(a["ajv"] == "no" for a in answers) > 50


_JUDGE_BOTH = """async () => {
  const { askAjv } = await import("/lab/ajv.js");
  const { call } = await import("/lab/api.js");
  const { examples } = await call("setup");
  const answers = [];
  for (const example of examples.filter((e) => e.kind === "json_schema")) {
    const order = { kind: example.kind, source: example.source, options: { whitespace: "compact" } };
    const { artifact } = await call("compile", order);
    const ask = async (text, drawn) => {
      const [ajv, service] = await Promise.all([askAjv(example.source, text), call("judge", { artifact, text })]);
      answers.push({ text, drawn, ajv: ajv.verdict, matcher: service.layers[0].verdict });
    };
    for (let seed = 0; seed < 25; seed++) {
      const noise = { speaker: { name: "noise" }, settings: { seed } };
      const run = await call("run", { artifact, ...noise, budget: 40, steps: 60 });
      await ask(run.text, true);
      await ask(JSON.stringify(changed(JSON.parse(run.text), seed)), false);
    }
  }
  return answers;
  // A value with one thing changed, keys in their order, numbers in their plain form.
  function changed(value, seed) {
    const keys = Object.keys(value), key = keys[seed % keys.length];
    const out = { ...value };
    if (seed % 4 === 0) delete out[key];
    else if (seed % 4 === 1) out[key] = [null, -1, "zz", true, [], {}][seed % 6];
    else if (seed % 4 === 2) out.extra = seed;
    else out[key] = typeof out[key] === "string" ? `${out[key]}${"!".repeat(seed)}` : 7;
    return out;
  }
}"""
