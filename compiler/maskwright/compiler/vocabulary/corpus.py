"""The text that the shipped vocabulary is trained on, generated from word lists and templates written for it.

Four kinds of document, from one seeded generator: sentences of English, sentences in other languages and
scripts (fewer), JSON documents with varied keys and layouts, and code-like text. `documents` gives the same
text on every run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any


def _words(text: str) -> list[str]:
    return text.split()


def _lines(text: str) -> list[str]:
    return text.strip().split("\n")


NOUNS = _words(
    """
    account address agent amount animal answer apple article author balance bank basket book bottle box bridge
    building button calendar camera captain carrier case category cell chapter child city claim class clock
    cloud code colour column comment company computer contact contract corner country course customer database
    date day delivery device discount document door driver editor email engine entry error evening event
    example exchange family field file flight flower folder forest friend garden glass grammar group guest
    hammer harbour history holiday hospital hotel house hour image index insurance invoice island item journey
    key kitchen label lake language letter library light line list location machine manager map market meeting
    member message method minute model money month morning mountain music name network newspaper night note
    number object office option order owner package page paper parcel parent park part partner passenger
    password payment person phone picture piece place plan plant player policy position price problem process
    product profile project purchase quantity query question rain reason receipt record refund region report
    request response result return river road room rule schedule schema school score season seat section
    sender sentence server service session shelf ship shop signal size soil song source space station status
    step stock stone store story street string student subject summary support system table task teacher team
    temperature test text ticket time title token tool total town track train transfer tree truck type unit
    user value vehicle version village visit visitor voice warehouse water weather week wheel window winter
    word work worker year
    """
)
VERBS = _words(
    """
    accepts adds answers asks becomes begins brings builds buys calls cancels carries changes checks closes
    collects compares confirms contains copies counts creates delivers describes divides draws enters expects
    explains fills finds follows gives grows handles holds includes keeps knows leaves lists loads looks makes
    matches measures meets moves needs offers opens orders paints passes pays picks prints produces provides
    publishes pulls pushes reads receives refuses rejects remembers removes repairs replaces requires returns
    runs saves sees sells sends shows signs starts stops stores takes teaches tells tests turns updates uses
    waits walks wants watches writes
    """
)
ADJECTIVES = _words(
    """
    able active afraid ancient available bad beautiful big blue brief bright broken busy calm careful cheap
    clean clear closed cold common complete correct current dark deep different difficult early easy empty
    equal exact expensive external false famous fast final fine first free fresh full general good great green
    happy hard heavy high hot important internal invalid large last late light local long lost loud low main
    missing modern narrow natural new nice old open ordinary own past plain possible present private public
    quick quiet ready recent red rich round safe second several sharp short simple slow small soft special
    strange strong sudden sweet tall thick thin third tired true unknown useful usual valid warm weak wet
    white whole wide wild wrong yellow young
    """
)
NAMES = _words(
    """
    Adam Alice Amara Anna Ben Boris Carla Chen David Dora Elif Emil Farah Felix Grace Hana Hugo Ivan Jana
    Jonas Karin Leila Leo Lina Marta Mehmet Mina Nils Noor Olga Omar Paula Petra Priya Ravi Rosa Sara Simon
    Tariq Tess Uma Victor Wanda Yusuf Zoe Berlin Cairo Lagos Lima Lisbon London Mumbai Nairobi Oslo Paris
    Quito Rome Seoul Tokyo Vienna
    """
)
OPENERS = _lines(
    """
After that
As a result
At the same time
Because of this
Before the meeting
During the week
Every morning
For
example However
If you ask me
In other words
In the end
Last year
Meanwhile
Most of the time
Once again Of
course
On the other hand
Sometimes
Then
Today
Yesterday
Tomorrow
Years later
Without a word
To be fair When
the rain stops
While they wait
With a little help
"""
)
SMALL = _words("and but or because so that which when where while until although if unless")
LINKS = _words("in on at by with from to for of about under over between through near without")

SCRIPTS = _lines(
    """
Der alte Mann geht jeden Morgen über die Brücke und kauft frische Brötchen für seine Familie.
Die Rechnung wurde bezahlt, aber die Lieferung ist noch nicht angekommen; bitte prüfen Sie den Status.
Le garçon a oublié son cahier à l'école, où les élèves préparent déjà la fête d'été.
Votre commande a été expédiée et vous recevrez bientôt un courrier électronique de confirmation.
El niño pequeño corrió mañana y tarde por la montaña, ¿quién sabe por qué? ¡Qué alegría!
La dirección del envío no es válida; por favor, escriba el código postal otra vez.
A reunião começa às nove horas, e ninguém quer chegar atrasado à estação de São Paulo.
La città è più bella quando piove, perché le luci si riflettono sull'acqua del fiume.
Żółta łódka płynie powoli wzdłuż brzegu, a dzieci śpiewają wesołą piosenkę.
Příliš mnoho otázek zůstává bez odpovědi, řekl učitel a zavřel knihu.
Güneş doğarken balıkçılar ağlarını topladı ve şehre geri döndü.
Flickan på tåget läste en bok om öar, älvar och den långa vägen hem.
Старый дом стоял на берегу реки, и каждое утро дети бегали туда играть.
Заказ оплачен, но посылка ещё не пришла; проверьте, пожалуйста, номер отправления.
Весняний дощ ішов цілу ніч, і вранці місто було чисте та тихе.
Το παλιό πλοίο έφυγε από το λιμάνι πριν ξημερώσει, και κανείς δεν το είδε ξανά.
الطقس جميل اليوم والناس يجلسون في الحديقة ويتحدثون عن السفر والكتب القديمة.
تم استلام الطلب وسوف يصل خلال ثلاثة أيام إلى العنوان المذكور.
הילדה הקטנה כתבה מכתב ארוך לסבתא שלה ושלחה אותו בדואר.
بچه‌ها هر روز صبح به مدرسه می‌روند و عصر در پارک بازی می‌کنند.
आज मौसम बहुत अच्छा है और बच्चे बगीचे में खेल रहे हैं।
आपका भुगतान सफल रहा; कृपया रसीद संभाल कर रखें।
আজ সকালে বৃষ্টি হয়েছে, তাই নদীর জল একটু বেড়েছে।
இன்று காலை கடற்கரையில் பலர் நடந்து கொண்டிருந்தார்கள்.
วันนี้อากาศดีมาก เด็กๆ วิ่งเล่นอยู่ในสวนหลังบ้าน
Hôm nay trời đẹp, chúng tôi đi chợ mua rau, cá và hoa quả tươi.
今天天气很好,孩子们在公园里玩,老人坐在树下看书。
您的订单已经付款,包裹将在三天之内送到指定的地址。
昨天晚上下了大雪,今天早上城市里非常安静。
今日は天気がいいので、子どもたちは公園で遊んでいます。
ご注文の商品は発送されました。到着までしばらくお待ちください。
カメラとノートをカバンに入れて、駅まで歩いて行きました。
오늘은 날씨가 좋아서 아이들이 공원에서 놀고 있습니다.
주문하신 상품이 발송되었으니 잠시만 기다려 주세요.
დილით ბავშვები სკოლაში მიდიან და საღამოს სახლში ბრუნდებიან.
Այսօր եղանակը լավ է, և երեխաները խաղում են այգում։
☀️ 🌧️ ❄️ — 😀 😂 👍 👍🏽 ❤️ 🎉 🚀 🙏 ✅ ❌ ⚠️ 👩‍👧 🇫🇷 🇯🇵 → ← ↑ ↓ ≤ ≥ ≠ ± × ÷ € £ ¥ ° § © ™ … “ ” ‘ ’ « » • ½ ²
"""
)

CODE = (
    "def {a}_{b}({a}, {b}=None):\n    if {b} is None:\n        return {a}\n    for i in range(len({a})):\n"
    "        {b} += {a}[i] * {n}\n    return {b}\n",
    "class {A}{B}(object):\n    def __init__(self, {a}: str, {b}: int = {n}) -> None:\n"
    "        self.{a} = {a}\n"
    "        self._{b} = {b}\n\n    @property\n    def {c}(self):\n        return self.{a}.{c}()\n",
    "function {a}{B}({a}, {b}) {{\n"
    "  const {c} = {a}.map((x) => x.{b} ?? {n});\n"
    "  return {c}.filter(Boolean);\n}}\n",
    "import {{ {A}, {B} }} from './{c}';\n\n"
    "export async function get{A}(id: string): Promise<{B} | null> {{\n"
    "  const response = await fetch(`/api/{a}/${{id}}`);\n"
    "  return response.ok ? response.json() : null;\n}}\n",
    "SELECT {a}.id, {a}.{b}, COUNT(*) AS total\nFROM {a}s AS {a}\n"
    "LEFT JOIN {c}s ON {c}s.{a}_id = {a}.id\n"
    "WHERE {a}.{b} > {n} AND {c}s.status = 'open'\nGROUP BY {a}.id\nORDER BY total DESC\nLIMIT {n};\n",
    "#include <stdio.h>\n\nint main(int argc, char **argv) {{\n    int {a} = {n};\n    while ({a}-- > 0) {{\n"
    '        printf("%d %s\\n", {a}, argv[0]);\n    }}\n    return 0;\n}}\n',
    "pub fn {a}_{b}(&self, {c}: &[u8]) -> Result<usize, Error> {{\n    let mut {b} = 0usize;\n"
    "    for byte in {c}.iter() {{\n        {b} += *byte as usize;\n    }}\n    Ok({b})\n}}\n",
    '<div class="{a}-{b}">\n\t<h1>{A} {B}</h1>\n\t<p id="{c}">{n}</p>\n\t<a href="https://example.com/{a}/{c}">'
    "{b}</a>\n</div>\n",
    "{a}:\n  {b}: {n}\n  {c}:\n    - name: {a}\n      enabled: true\n    - name: {b}\n      enabled: false\n",
    "# {A} {B}\n\n- the **{a}** of the {b}\n- `{c}` is {n}\n\n| {a} | {b} |\n|---|---|\n| {n} | {c} |\n",
)


def documents(seed: int = 1, count: int = 4000) -> Iterator[str]:
    """`count` documents, the four kinds in turn; the same for the same arguments."""
    random = Random(seed)
    kinds: tuple[Callable[[Random], str], ...] = (_prose, _json, _code, _json, _prose, _json)
    for i in range(count):
        yield _scripts(random) if i % 20 == 0 else kinds[i % len(kinds)](random)


def _prose(random: Random) -> str:
    return " ".join(_sentence(random) for _ in range(random.randint(2, 6)))


def _sentence(random: Random) -> str:
    words = [_clause(random)]
    if random.random() < 0.3:
        words.insert(0, random.choice(OPENERS) + ",")
    if random.random() < 0.4:
        words[-1] += random.choice((",", "")) + f" {random.choice(SMALL)} {_clause(random)}"
    text = " ".join(words)
    return text[0].upper() + text[1:] + random.choice(("." * 6) + "!?")


def _clause(random: Random) -> str:
    article = random.choice(("the", "a", "this", "every", "their", "our", "my", "some", "that", "no"))
    subject = random.choice(NAMES) if random.random() < 0.2 else f"{article} {_noun(random)}"
    clause = f"{subject} {random.choice(VERBS)} the {_noun(random)}"
    if random.random() < 0.5:
        clause += (
            f" {random.choice(LINKS)} {random.choice(('the', 'a', 'your', 'his', 'her'))} {_noun(random)}"
        )
    if random.random() < 0.15:
        clause += f" at {random.randint(0, 23)}:{random.randint(0, 59):02d}"
    return clause


def _noun(random: Random) -> str:
    noun = random.choice(NOUNS)
    return f"{random.choice(ADJECTIVES)} {noun}" if random.random() < 0.35 else noun


def _scripts(random: Random) -> str:
    return " ".join(random.choice(SCRIPTS) for _ in range(2))


def _code(random: Random) -> str:
    a, b, c = random.sample(NOUNS, 3)
    return random.choice(CODE).format(a=a, b=b, c=c, A=a.title(), B=b.title(), n=random.randint(0, 999))


def _json(random: Random) -> str:
    indent = random.choice((None, None, None, 2, 4))
    separators = (",", ":") if indent is None and random.random() < 0.4 else None
    value = _value(random, 0)
    return json.dumps(value, ensure_ascii=random.random() < 0.1, indent=indent, separators=separators)


def _value(random: Random, depth: int) -> Any:
    kind = random.randint(0, 9) if depth < 3 else random.randint(4, 9)
    if depth == 0 or kind < 3:
        return {_key(random): _value(random, depth + 1) for _ in range(random.randint(2, 6))}
    if kind == 3:
        return [_value(random, depth + 1) for _ in range(random.randint(0, 4))]
    if kind == 4:
        return random.choice((True, False, None))
    if kind in (5, 6):
        return random.choice(
            (random.randint(0, 9), random.randint(-99, 9999), round(random.uniform(-9, 999), 2))
        )
    return _string(random)


def _key(random: Random) -> str:
    a, b = random.choice(NOUNS), random.choice(NOUNS)
    usual = (
        "id",
        "name",
        "type",
        "value",
        "kind",
        "url",
        "action",
        "reason",
        "currency",
        "created_at",
        "$ref",
    )
    return random.choice(
        (a, f"{a}_{b}", a + b.title(), f"{a}_id", f"is_{random.choice(ADJECTIVES)}", random.choice(usual))
    )


def _string(random: Random) -> str:
    if random.random() < 0.03:
        return random.choice(SCRIPTS)
    day = f"{random.randint(1990, 2035)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"
    return random.choice(
        (
            random.choice(NOUNS),
            random.choice(ADJECTIVES).upper(),
            random.choice(NAMES),
            _sentence(random),
            day,
            f"{day}T{random.randint(0, 23):02d}:{random.randint(0, 59):02d}:00Z",
            f"{random.choice(NAMES).lower()}.{random.choice(NOUNS)}@example.com",
            f"https://example.org/{random.choice(NOUNS)}/{random.randint(1, 999)}?{random.choice(NOUNS)}=1",
            f"{random.getrandbits(32):08x}-{random.getrandbits(16):04x}-4{random.getrandbits(12):03x}",
            f'line "one"\n\tline {random.randint(1, 9)}\\{random.choice(NOUNS)}',
            "",
        )
    )
