"""The language of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("py3langid", reason="the extra 'serve' is not installed")

from dragoman.text.detection import Candidate, LanguageDetector, chinese

SENTENCES = {
    "en": "The committee will discuss the proposal next week.",
    "de": "Der Ausschuss wird den Vorschlag nächste Woche besprechen.",
    "fr": "Le comité discutera de la proposition la semaine prochaine.",
    "zh-Hans": "委员会下周将讨论这项提案。",
    "zh-Hant": "委員會下週將討論這項提案。",
    "ja": "委員会は来週その提案を検討する予定です。",
    "ko": "위원회는 다음 주에 제안을 논의할 것이다.",
    "ru": "Комитет обсудит предложение на следующей неделе.",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_told_apart(language: str) -> None:
    """By script, words, and for Chinese by characters."""
    found = LanguageDetector(["zh", "zho_Hant", *SENTENCES]).detect(SENTENCES[language])
    assert found.language == language
    assert found.confidence >= 0.5
    assert found.candidates[0] == Candidate(language, found.confidence)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh-Hans", "我们使用Python和GitHub来管理代码。"),
        ("zh-Hans", "请打开Settings。"),
        ("zh-Hans", "请安装Microsoft Visual Studio Code。"),
        ("zh-Hans", "登录GitHub Enterprise Server"),
        ("zh-Hans", "请访问https://example.com/a/long/path，谢谢。"),
        ("zh-Hans", "请写信给chen.longname@example.com。"),
        ("zh-Hans", "使用`git commit --amend`"),
        ("zh-Hans", "点击 {button_label} 按钮"),
        ("zh-Hans", "陈丽 (Chen Li)"),
        ("zh-Hans", "我们在 GitHub 上用 Python 和 PyTorch 训练了一个 Transformer 模型"),
        ("zh-Hans", "在 Linux 上 path 参数接受一个 path-like 对象，由 open-source 库提供。"),
        ("zh-Hans", "python 教程"),
        ("zh-Hans", "把 log in 按钮改成 sign up"),
        ("zh-Hans", "我们的 CEO 说 no problem"),
        ("ja", "npm run build を実行する"),
        ("ja", "Microsoft Visual Studio Codeを開く"),
        ("ja", "ﾃﾞｰﾀを開く"),
        ("ja", "東京タワー展望台"),
        ("ko", "Microsoft Visual Studio Code를 설치하세요."),
        ("en", "The minister met Chen Li (陈丽) in Chengdu."),
        ("en", "Mr. Chen 陈 said that he would not come."),
        ("en", "Alibaba (阿里巴巴) Reports Earnings"),
        ("en", "Open the 设置 menu and choose a file."),
        ("en", "Toyota (トヨタ自動車) builds cars in Japan."),
        ("en", "Click 저장 to save the file."),
        ("en", "I like 火锅 and 烤鸭 and 小笼包 a lot"),
        ("en", "SALE 大减价 today only for all members"),
        ("en", "Go to 设置 and then 通用 and then 关于本机"),
        ("de", "Der Minister traf Li Keqiang 李克强 gestern in der Stadt."),
        ("en", "The minister met Иван Петров and Ольга Смирнова in Moscow."),
        ("ru", "Комитет использует Python и GitHub."),
        ("ru", "Используйте команду git commit -m message"),
        ("ru", "Нажмите save as и выберите file"),
    ],
)
def test_names_and_addresses_in_another_script_do_not_count(language: str, text: str) -> None:
    """Two characters of East Asia say as much as a word in small letters, names say less."""
    assert LanguageDetector(SENTENCES).detect(text).language == language


def test_what_could_be_anything_is_unsure() -> None:
    """With three candidates; what has no letters, or no language of the models, has none."""
    detector = LanguageDetector(["en", "de", "fr", "es", "it", "nl", "sv", "ru"])
    unsure = detector.detect("taxi")
    assert unsure.language is None
    assert len(unsure.candidates) == 3
    assert "ru" not in {each.language for each in unsure.candidates}
    for text in ("", "123 !?", "李克强"):
        assert detector.detect(text).candidates == ()


@given(st.text(max_size=200))
def test_any_text_can_be_asked_about(text: str) -> None:
    """Shares are probabilities, the best first."""
    found = LanguageDetector(SENTENCES).detect(text)
    shares = [each.confidence for each in found.candidates]
    assert shares == sorted(shares, reverse=True)
    assert all(0 <= share <= 1 for share in shares)
    assert (found.language is None) == (found.confidence < 0.5)
    assert chinese(text) in {"zh-Hans", "zh-Hant"}


def test_what_no_model_reads_is_told_where_it_is_clear() -> None:
    """So a text that is in its target's language is; a short one is in one that is read."""
    detector = LanguageDetector(["en"], ["de", "fr"])
    clear = detector.detect("Ein Mann führt seinen Hund spazieren.")
    assert clear.language == "de"
    assert 0.9 <= clear.confidence < 1.0
    assert {each.language for each in clear.candidates} == {"de", "en", "fr"}
    unclear = detector.detect("Save")
    assert [each.language for each in unclear.candidates] == ["en"]
    assert unclear.confidence < 0.9


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Gdzie jest najbliższa biblioteka publiczna?", "pl"),
        ("¿Dónde está la biblioteca pública más cercana?", "es"),
        (SENTENCES["ja"], "ja"),
        (SENTENCES["ko"], "ko"),
        ("ห้องสมุดที่ใกล้ที่สุดอยู่ที่ไหน", "th"),
        ("أين تقع أقرب مكتبة عامة؟", "ar"),
        (SENTENCES["ru"], "ru"),
        ("Julius Caesar", "de"),
        ("the questionnaire.", "en"),
        ("die out", "en"),
        ("Save", "en"),
        ("Speichern", "de"),
        ("Datei öffnen", "de"),
        ("Bosnien und Herzegowina (Sarajevo)", "de"),
        ("你好", "zh-Hans"),
        ("打开文件", "zh-Hans"),
        ("我喜欢喝茶。", "zh-Hans"),
    ],
)
def test_any_language_is_told_where_a_text_is_clearly_in_none_of_the_models(
    text: str, language: str
) -> None:
    """Of some words: names and short texts are in one of the models'."""
    detector = LanguageDetector(["en", "de", "zh"], ["de", "en", "zh"])
    assert detector.detect(text).candidates[0].language == language


def test_what_is_written_hides_no_language_that_is_not_told() -> None:
    """As the identifier gives it no probability."""
    assert LanguageDetector(["zgh"], ["fr"]).detect("Azul fell-awen").language == "zgh"
