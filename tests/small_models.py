"""Models of a few hundred weights, and a real small one where it is installed."""

from pathlib import Path

import pytest

from capbias_core.language.files import MINILM_PACKAGE

WORDS = ("a", "man", "woman", "person", "people", "men", "women", "with", "his", "her", "their", "dog", "cake")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> dict[str, Path]:
    """A GPT-2 and a BERT of a few hundred weights, saved as real ones are."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: code for code, word in enumerate(["<unk>", "<pad>", "<s>", "[MASK]", *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "mask_token": "[MASK]"}
    tokens = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special)
    torch.manual_seed(0)
    folder, size = tmp_path_factory.mktemp("models"), {"vocab_size": len(tokens)}
    gpt = {"n_positions": 32, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 2, "eos_token_id": 2}
    bert = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    made = {"gpt": transformers.GPT2LMHeadModel(transformers.GPT2Config(**size, **gpt))}
    made["bert"] = transformers.BertForMaskedLM(transformers.BertConfig(**size, max_position_embeddings=32, **bert))
    for name, model in made.items():
        model.save_pretrained(folder / f"tiny{name}")
        tokens.save_pretrained(folder / f"tiny{name}")
    return {name: folder / f"tiny{name}" for name in made}


@pytest.fixture(scope="module")
def minilm() -> str:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip(MINILM_PACKAGE.replace("-", "_"))
    return "minilm"
