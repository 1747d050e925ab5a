"""Tiny captioners with random weights, made from configurations and saved as real ones are; a few thousand weights."""

from __future__ import annotations

from pathlib import Path

SIDE, PATCH = 32, 8  # pixels of the picture that they read, and of a patch: a map of 4 x 4
WORDS = ["a", "man", "woman", "person", "riding", "holding", "on", "street", "with", "red", "dog", "ball"]
WORDS += ["kitchen", "surf", "##board", ".", "user", ":", "assistant", "describe", "the", "picture"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
VISION = SIZES | {"image_size": SIDE, "patch_size": PATCH, "initializer_range": 0.5}
BERT = SIZES | {"vocab_size": len(PIECES) + 2, "max_position_embeddings": 64, "initializer_range": 0.5}


def _bert_tokenizer():
    from transformers import BertTokenizerFast

    return BertTokenizerFast(vocab={piece: place for place, piece in enumerate(PIECES)})


def _word_tokenizer(**special: str):
    """A tokenizer of whole words, with special tokens of the names given."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = [*dict.fromkeys(special.values()), *(word.strip("#") for word in WORDS)]
    tokenizer = Tokenizer(models.WordLevel({name: place for place, name in enumerate(names)}, special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _square(kind: str, **given):
    """An image processor that makes squares of SIDE pixels."""
    import transformers

    return getattr(transformers, kind)(size={"height": SIDE, "width": SIDE}, **given)


def save_blip(folder: Path) -> Path:
    """BLIP: a decoder of text that looks at the picture by cross-attention."""
    import torch
    from transformers import BlipConfig, BlipForConditionalGeneration, BlipProcessor

    torch.manual_seed(0)
    tokens = {"bos_token_id": len(PIECES), "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
    text = BERT | tokens | {"encoder_hidden_size": 32}
    config = BlipConfig(text_config=text, vision_config=VISION, projection_dim=16)
    model = BlipForConditionalGeneration(config)
    bias = model.text_decoder.cls.predictions.bias.data
    bias[:5] = bias[len(PIECES) :] = -20.0  # it always says something,
    bias[[PIECES.index("man"), PIECES.index("woman")]] = 8.0  # and likes to name a person
    return _saved(folder, model, BlipProcessor(_square("BlipImageProcessor"), _bert_tokenizer()))


def save_git(folder: Path) -> Path:
    """GIT: patches stand before the words of one decoder; its processor cuts the middle out of a picture."""
    import torch
    from transformers import CLIPImageProcessor, GitConfig, GitForCausalLM, GitProcessor

    torch.manual_seed(0)
    config = GitConfig(vision_config=VISION, bos_token_id=2, eos_token_id=3, pad_token_id=0, **BERT)
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    return _saved(folder, GitForCausalLM(config), GitProcessor(images, _bert_tokenizer()))


def save_vit_gpt2(folder: Path) -> Path:
    """ViT-GPT2: an encoder of pictures and a decoder of text, with a tokenizer and an image processor apart."""
    import torch
    from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

    torch.manual_seed(0)
    tokenizer = _word_tokenizer(unk_token="<|end|>", bos_token="<|end|>", eos_token="<|end|>", pad_token="<|end|>")
    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.5}
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0}
    text = GPT2Config(**sizes, **tokens, add_cross_attention=True, is_decoder=True)
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(**VISION), text)
    config.decoder_start_token_id = config.eos_token_id = config.pad_token_id = 0
    _saved(folder, VisionEncoderDecoderModel(config), tokenizer)
    _square("ViTImageProcessor").save_pretrained(folder)
    return folder


def save_llava(folder: Path) -> Path:
    """LLaVA: projected patches stand in a prompt in place of <image>; the map is the layer before the last."""
    return _save_llava(folder, "Llava")


def save_talker(folder: Path) -> Path:
    """A kind without a preset: it talks, with a chat template, and reads the states of two layers."""
    template = (
        "{% for own in messages %}user : {% for part in own['content'] %}"
        "{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %} assistant :{% endfor %}"
    )
    return _save_llava(folder, "VipLlava", {"vision_feature_layers": [-2, 1]}, template)


def _save_llava(folder: Path, kind: str, states: dict | None = None, template: str | None = None) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = _word_tokenizer(
        unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>", image_token="<image>"
    )
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
    text = transformers.LlamaConfig(**SIZES, **tokens, max_position_embeddings=128, initializer_range=0.5)
    config = getattr(transformers, f"{kind}Config")(
        vision_config=transformers.CLIPVisionConfig(**VISION),
        text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        **(states or {}),
    )
    images = transformers.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    processor = transformers.LlavaProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    )
    return _saved(folder, getattr(transformers, f"{kind}ForConditionalGeneration")(config), processor)


def save_florence(folder: Path) -> Path:
    """Florence-2: convolutions and windows, an encoder and a decoder of text, the task as a word of the prompt."""
    import torch
    from transformers import (
        BartConfig,
        Florence2Config,
        Florence2ForConditionalGeneration,
        Florence2Processor,
        Florence2VisionConfig,
    )

    torch.manual_seed(0)
    tokenizer = _word_tokenizer(
        bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", image_token="<image>"
    )
    parts = {"layers": 1, "attention_heads": 2, "ffn_dim": 48}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in parts.items()}
    tokens = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    text = BartConfig(
        **(sizes | tokens),
        vocab_size=len(tokenizer),
        d_model=32,
        max_position_embeddings=128,
        init_std=0.5,
        forced_eos_token_id=2,
    )
    patches = {"patch_size": [7, 3], "patch_stride": [4, 2], "patch_padding": [3, 1], "patch_prenorm": [False, True]}
    stages = {"depths": [1, 1], "embed_dim": [16, 32], "num_heads": [2, 2], "num_groups": [2, 2]}
    vision = Florence2VisionConfig(**patches, **stages, window_size=4, projection_dim=32, drop_path_rate=0.0)
    config = Florence2Config(
        text_config=text, vision_config=vision, image_token_id=tokenizer.convert_tokens_to_ids("<image>")
    )
    images = _square("CLIPImageProcessor", do_center_crop=False)
    images.image_seq_length = (SIDE // 8) ** 2 + 1
    return _saved(folder, Florence2ForConditionalGeneration(config), Florence2Processor(images, tokenizer))


def save_blip2(folder: Path) -> Path:
    """BLIP-2: queries read the picture, and stand before the words of a language model."""
    import torch
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor, OPTConfig

    torch.manual_seed(0)
    tokenizer = _word_tokenizer(bos_token="</s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    processor = Blip2Processor(_square("BlipImageProcessor"), tokenizer, num_query_tokens=4)  # adds <image>
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 48}
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1}
    text = OPTConfig(**sizes, **tokens, word_embed_proj_dim=32, max_position_embeddings=64, init_std=0.5)
    qformer = {**BERT, "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    config = Blip2Config(
        vision_config=VISION,
        qformer_config=qformer,
        text_config=text,
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    model = Blip2ForConditionalGeneration(config)
    torch.nn.init.normal_(model.query_tokens)
    return _saved(folder, model, processor)


def _saved(folder: Path, model, processor) -> Path:
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


TINY = {
    "blip": save_blip,
    "blip2": save_blip2,
    "git": save_git,
    "vit-gpt2": save_vit_gpt2,
    "llava": save_llava,
    "florence": save_florence,
    "talker": save_talker,
}
