from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.domain.analysis import STOP_WORDS, holds_cjk, is_cjk, query_terms, tokens
from tests import text_fixtures as fixtures


@pytest.mark.requirement("retrieval.analysis.identifiers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("expected_hash", ["expect", "hash", "expected_hash"]),
        ("knownHashes", ["knownhash", "known", "hash"]),
        ("mcp_contract.rs", ["mcp", "contract", "rs", "mcp_contract.rs"]),
        ("a.b/c", ["a", "b", "c", "a.b/c"]),
        ("k8s utf8 http2", ["k8s", "utf8", "http2"]),
        ("HTTPServer2", ["httpserver2", "http", "server2"]),
        ("std::vec", ["std", "vec", "std::vec"]),
        ("__init__", ["init"]),
        ("QUOTE_CACHE_TTL_S", ["quot", "cach", "ttl", "s", "quote_cache_ttl_s"]),
        ("LBL-2010", ["lbl", "2010", "lbl-2010"]),
        ("XMLHttpRequest", ["xmlhttprequest", "xml", "http", "request"]),
        ("parseJSON()", ["parsejson", "pars", "json"]),
        ("--dry-run", ["dri", "run", "dry-run"]),
        ("--region=eu-1", ["region", "eu", "1", "eu-1"]),
        ("min.insync.replicas", ["min", "insync", "replica", "min.insync.replicas"]),
        ("ScanQueue.flush", ["scanqueu", "scan", "queue", "flush", "scanqueue.flush"]),
        ("user->name", ["user", "name"]),
        ("@scope/pkg", ["scope", "pkg", "scope/pkg"]),
        ("${HOME}", ["home"]),
    ],
)
def test_identifiers_give_the_whole_and_the_parts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.requirement("retrieval.analysis.identifiers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docs/adr/0007-x.md", ["doc", "adr", "0007", "x", "md", "docs/adr/0007-x.md"]),
        ("see `0007-x.md`.", ["see", "0007", "x", "md", "0007-x.md"]),
        ("cases/*.csv", ["case", "csv"]),
        ("src\\win\\main.c", ["src", "win", "main", "c", "src\\win\\main.c"]),
        ("~/.config/tool.toml", ["config", "tool", "toml", "config/tool.toml"]),
        ("指南/发布流程.md", ["指南", "发布", "布流", "流程", "md"]),
    ],
)
def test_paths_and_file_names_give_the_whole_and_the_parts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.requirement("retrieval.analysis.numbers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.2.3", ["1.2.3", "v1", "2", "3", "v1.2.3"]),
        ("1.10.0-rc.2", ["1", "10", "0", "rc", "2", "1.10.0-rc.2"]),
        (":8443", ["8443"]),
        ("localhost:8443", ["localhost", "8443", "localhost:8443"]),
        ("10.0.0.1", ["10", "0", "0", "1", "10.0.0.1"]),
        ("0x1f", ["0x1f"]),
        ("10_000", ["10000", "10", "000", "10_000"]),
        ("3.14", ["3", "14", "3.14"]),
        ("８４４３", ["8443"]),
        ("2026-03-14", ["2026", "03", "14", "2026-03-14"]),
        ("14 March 2026", ["2026-03-14", "14", "march", "2026"]),
        ("2026年3月14日", ["2026-03-14", "2026", "年", "3", "月", "14", "日"]),
    ],
)
def test_numbers_versions_and_dates_are_terms(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.requirement("retrieval.analysis.cjk")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("合同编号", ["合同", "同编", "编号"]),
        ("我", ["我"]),
        ("我 爱 你", ["我", "爱", "你"]),
        ("使用Rust语言", ["使用", "rust", "语言"]),
        ("日本語の", ["日本", "本語", "語の"]),
        ("한국어", ["한국", "국어"]),
        ("ｶﾀｶﾅ", ["カタ", "タカ", "カナ"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("第3章", ["第", "3", "章"]),
        ("報關單，已廢止", ["報關", "關單", "已廢", "廢止"]),
        ("请看expected_hash的值", ["请看", "expect", "hash", "expected_hash", "的值"]),
        ("データベース", ["デー", "ータ", "タベ", "ベー", "ース"]),
    ],
)
def test_chinese_japanese_and_korean_give_overlapping_pairs(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_english_words_are_stemmed_alike_in_every_form() -> None:
    assert tokens("Running runs RUN") == ["run", "run", "run"]


def test_other_scripts_are_folded_and_not_stemmed() -> None:
    assert tokens("ПАКЕТА пакета Größe STRASSE Straße") == ["пакета", "пакета", "grösse", "strass", "strass"]


def test_composed_and_decomposed_letters_are_the_same_words() -> None:
    assert tokens(fixtures.NFC) == tokens(fixtures.NFD)


@pytest.mark.parametrize("text", ["🚀", "👩‍👩‍👧‍👦 🏳️‍🌈", "…—·", "，。！", "____", "\u200d"])
def test_what_is_no_word_gives_no_term(text: str) -> None:
    assert tokens(text) == query_terms(text) == []


def test_emoji_separate_words_and_leave_them_as_they_are() -> None:
    assert tokens("deploy🚀done 👍🏽 ok") == tokens("deploy done ok")


def test_combining_marks_stay_with_their_letters() -> None:
    assert tokens("हिन्दी में") == ["हिन्दी", "में"]


def test_invisible_characters_do_not_split_words() -> None:
    assert tokens("re\u00adset p\u200dath \ufeffname") == tokens("reset path name")


@pytest.mark.requirement("retrieval.analysis.query")
def test_a_query_loses_stop_words_and_repetitions() -> None:
    assert query_terms("How do I release the release, and how?") == ["releas"]


def test_a_query_of_stop_words_only_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


def test_documents_keep_stop_words_and_repetitions() -> None:
    assert tokens("the the end") == ["the", "the", "end"]
    assert "the" in STOP_WORDS


@pytest.mark.parametrize(
    "query", ["a AND (", "foo:bar", "-daemon", "id:*", '"unclosed', "*", "\\", "() [] {}"]
)
def test_operators_of_query_languages_are_plain_text(query: str) -> None:
    assert all(term.isalnum() or ":" in term for term in query_terms(query))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_every_term_of_a_query_is_a_term_of_the_same_text(text: str) -> None:
    terms = tokens(text)
    assert set(query_terms(text)) <= set(terms)
    assert not any(not term or any(c.isspace() for c in term) for term in terms)


@pytest.mark.parametrize("word", ["größe", "ёжик", "ὀδυσσεύς", "trước", "résumé"])
def test_case_of_a_word_does_not_matter(word: str) -> None:
    assert tokens(word.upper()) == tokens(word)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ["x", "_", "a-", "a.", "\u0301", "中", "a___", "\ufdfa", "Aa", "a\u200b", "🇨🇭"]
)
def test_a_mebibyte_of_anything_is_analysed(unit: str) -> None:
    text = unit * (fixtures.MIB // len(unit.encode()))
    assert all(len(term) <= 512 for term in tokens(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("发布之前请检查合同", True),
        ("如何使用 Rust tokenizer", True),
        ("plain English with one 字 in a long line of letters and letters", False),
        ("", False),
        ("!!! 123", False),
        ("한국어", True),
        ("Größe", False),
    ],
)
def test_text_in_chinese_japanese_or_korean_is_recognised(text: str, expected: bool) -> None:
    assert is_cjk(text) is expected
    assert holds_cjk(text) is (expected or "字" in text)


@pytest.mark.requirement("retrieval.words.spellings")
@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("on 14 March 2026", "2026-03-14"),
        ("March 14th, 2026", "2026-03-14"),
        ("Sept. 3, 2025", "2025-09-03"),
        ("2026年3月14日", "2026-03-14"),
        ("2026/3/14", "2026-03-14"),
        ("2026.03.14.", "2026-03-14"),
        ("2026-03-14", "2026-03-14"),
        ("10_000 rows", "10000"),
        ("26,000", "26000"),
        ("12'345'678", "12345678"),
        ("v1.2.3", "1.2.3"),
        ("V1.2", "1.2"),
    ],
)
def test_one_spelling_of_dates_numbers_and_versions_is_always_there(text: str, term: str) -> None:
    assert query_terms(text).count(term) == 1
    assert tokens(text).count(term) == 1


@pytest.mark.requirement("retrieval.words.spellings")
@pytest.mark.parametrize("text", ["1,111" + ",111" * 200, "v1" + ".1" * 200])
def test_a_spelling_that_is_too_long_for_a_word_is_none(text: str) -> None:
    assert max(map(len, tokens(text))) <= 128


@pytest.mark.requirement("retrieval.words.spellings")
@pytest.mark.parametrize(
    "text",
    ["2026-13-40", "1,2,3", "1,234.56", "127.0.0.1", "may 3 boxes", "1/2/2026/3/4", "v2", "2026-03-145"],
)
def test_what_is_no_date_number_or_version_gives_no_such_term(text: str) -> None:
    plain = {part for part in re.split(r"[^\w]+", text.lower()) if part}
    assert {term for term in query_terms(text) if term not in plain} <= {text, "127.0.0.1", "234.56", "box"}
