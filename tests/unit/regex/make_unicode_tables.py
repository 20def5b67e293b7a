"""Writes `unicode_tables.txt` beside the regex compiler: python make_unicode_tables.py OUT

The source is the regress package (an ECMA-262 engine): each property's pattern is run over all scalar values. Its
Unicode version is given by hand below and checked by the number of assigned characters.

One line per table: `name TAB data`. Data is a list of base-36 numbers, each the distance from the one before: a set's
first..last pairs. `gc` and `sc` are partitions: `value:data` for each value, separated by spaces. `fold` lists the
orbits of simple case folding, separated by spaces.
"""

from __future__ import annotations

import sys
from pathlib import Path

import regress

UNICODE_VERSION = "17.0.0"
ASSIGNED = 159_801 + 65 + 137_468 + 2_048
"""Graphic and format characters of 17.0.0, controls, private use, surrogates."""

GENERAL = "Cc Cf Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()  # noqa: SIM905
BINARY = """ASCII_Hex_Digit AHex Alphabetic Alpha Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI Cased -
Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL
Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash -
Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji - Emoji_Component EComp Emoji_Modifier EMod
Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base
Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS
Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math - Noncharacter_Code_Point NChar
Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical - Regional_Indicator RI
Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper
Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS""".split()  # noqa: SIM905
SCRIPTS = """Adlm Adlam Aghb Caucasian_Albanian Ahom Ahom Arab Arabic Armi Imperial_Aramaic Armn Armenian Avst Avestan
Bali Balinese Bamu Bamum Bass Bassa_Vah Batk Batak Beng Bengali Berf Beria_Erfe Bhks Bhaiksuki Bopo Bopomofo
Brah Brahmi Brai Braille Bugi Buginese Buhd Buhid Cakm Chakma Cans Canadian_Aboriginal Cari Carian Cham Cham
Cher Cherokee Chrs Chorasmian Copt Coptic Cpmn Cypro_Minoan Cprt Cypriot Cyrl Cyrillic Deva Devanagari
Diak Dives_Akuru Dogr Dogra Dsrt Deseret Dupl Duployan Egyp Egyptian_Hieroglyphs Elba Elbasan Elym Elymaic
Ethi Ethiopic Gara Garay Geor Georgian Glag Glagolitic Gong Gunjala_Gondi Gonm Masaram_Gondi Goth Gothic
Gran Grantha Grek Greek Gujr Gujarati Gukh Gurung_Khema Guru Gurmukhi Hang Hangul Hani Han Hano Hanunoo
Hatr Hatran Hebr Hebrew Hira Hiragana Hluw Anatolian_Hieroglyphs Hmng Pahawh_Hmong Hmnp Nyiakeng_Puachue_Hmong
Hung Old_Hungarian Ital Old_Italic Java Javanese Kali Kayah_Li Kana Katakana Kawi Kawi Khar Kharoshthi
Khmr Khmer Khoj Khojki Kits Khitan_Small_Script Knda Kannada Krai Kirat_Rai Kthi Kaithi Lana Tai_Tham Laoo Lao
Latn Latin Lepc Lepcha Limb Limbu Lina Linear_A Linb Linear_B Lisu Lisu Lyci Lycian Lydi Lydian Mahj Mahajani
Maka Makasar Mand Mandaic Mani Manichaean Marc Marchen Medf Medefaidrin Mend Mende_Kikakui Merc Meroitic_Cursive
Mero Meroitic_Hieroglyphs Mlym Malayalam Modi Modi Mong Mongolian Mroo Mro Mtei Meetei_Mayek Mult Multani
Mymr Myanmar Nagm Nag_Mundari Nand Nandinagari Narb Old_North_Arabian Nbat Nabataean Newa Newa Nkoo Nko Nshu Nushu
Ogam Ogham Olck Ol_Chiki Onao Ol_Onal Orkh Old_Turkic Orya Oriya Osge Osage Osma Osmanya Ougr Old_Uyghur
Palm Palmyrene Pauc Pau_Cin_Hau Perm Old_Permic Phag Phags_Pa Phli Inscriptional_Pahlavi Phlp Psalter_Pahlavi
Phnx Phoenician Plrd Miao Prti Inscriptional_Parthian Rjng Rejang Rohg Hanifi_Rohingya Runr Runic Samr Samaritan
Sarb Old_South_Arabian Saur Saurashtra Sgnw SignWriting Shaw Shavian Shrd Sharada Sidd Siddham Sidt Sidetic
Sind Khudawadi Sinh Sinhala Sogd Sogdian Sogo Old_Sogdian Sora Sora_Sompeng Soyo Soyombo Sund Sundanese Sunu Sunuwar
Sylo Syloti_Nagri Syrc Syriac Tagb Tagbanwa Takr Takri Tale Tai_Le Talu New_Tai_Lue Taml Tamil Tang Tangut
Tavt Tai_Viet Tayo Tai_Yo Telu Telugu Tfng Tifinagh Tglg Tagalog Thaa Thaana Thai Thai Tibt Tibetan Tirh Tirhuta
Tnsa Tangsa Todr Todhri Tols Tolong_Siki Toto Toto Tutg Tulu_Tigalari Ugar Ugaritic Vaii Vai Vith Vithkuqi
Wara Warang_Citi Wcho Wancho Xpeo Old_Persian Xsux Cuneiform Yezi Yezidi Yiii Yi Zanb Zanabazar_Square
Zinh Inherited Zyyy Common""".split()  # noqa: SIM905
SC, SCX, PROPERTY = r"\p{sc=%s}+", r"\p{scx=%s}+", r"\p{%s}+"

TEXT = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
Ranges = list[tuple[int, int]]


def code_at(offset: int) -> int:
    """The scalar value whose UTF-8 holds this byte of `TEXT`."""
    three = 0x80 + 2 * 0x780
    for first, start, width in ((0x10000, three + 3 * 0xF000, 4), (0x800, three, 3), (0x80, 0x80, 2)):
        if offset >= start:
            code = first + (offset - start) // width
            return code + 0x800 if width == 3 and code >= 0xD800 else code
    return offset


def matches(pattern: str, flags: str = "u") -> Ranges:
    found = []
    for m in regress.Regex(pattern, flags).find_iter(TEXT):
        span = m.range()
        found.append((code_at(span.start), code_at(span.stop - 1)))
    out: Ranges = []
    for low, high in found:
        if out and (out[-1][1] + 1 == low or (out[-1][1], low) == (0xD7FF, 0xE000)):
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return out


def base36(n: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    out = ""
    while n or not out:
        n, d = divmod(n, 36)
        out = digits[d] + out
    return out


def encode(ranges: Ranges) -> str:
    at, out = 0, []
    for low, high in ranges:
        out += [base36(low - at), base36(high - low)]
        at = high
    return ",".join(out)


def orbits() -> list[list[int]]:
    """Classes of characters that match each other without regard to case, of two or more."""
    seen: set[int] = set()
    out = []
    cased = matches(r"\p{Changes_When_Casemapped}|\p{Changes_When_Casefolded}")
    for c in (c for low, high in cased for c in range(low, high + 1)):
        if c in seen:
            continue
        orbit = [x for low, high in matches(f"\\u{{{c:x}}}", "iu") for x in range(low, high + 1)]
        seen.update(orbit)
        if len(orbit) > 1:
            out.append(orbit)
    return out


def main(out: str) -> None:
    lines = [f"version\t{UNICODE_VERSION}"]
    general = {g: matches(rf"\p{{{g}}}+") for g in GENERAL}
    count = sum(high - low + 1 for r in general.values() for low, high in r) + 2_048
    if count != ASSIGNED:
        raise SystemExit(f"{count} characters are assigned, {ASSIGNED} in Unicode {UNICODE_VERSION}")
    lines.append("gc\t" + " ".join(f"{g}:{encode(r)}" for g, r in general.items()))
    pairs = list(zip(SCRIPTS[::2], SCRIPTS[1::2], strict=True))
    lines.append("sc_names\t" + " ".join(f"{a}={b}" for a, b in pairs))
    lines.append("sc\t" + " ".join(f"{a}:{encode(matches(SC % a))}" for a, _ in pairs))
    lines.append("scx\t" + " ".join(f"{a}:{encode(matches(SCX % a))}" for a, _ in pairs))
    lines.append("fold\t" + " ".join(",".join(base36(c) for c in o) for o in orbits()))
    names = list(zip(BINARY[::2], BINARY[1::2], strict=True))
    lines.append("binary_names\t" + " ".join(f"{short}={name}" for name, short in names if short != "-"))
    lines += [f"{name}\t{encode(matches(PROPERTY % name))}" for name, _ in names]
    Path(out).write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
