"""Captioners of transformers: photographs to captions, and the probability of a given caption. Loads torch.

Beam search without sampling: the same weights, photographs and settings give the same captions on the same machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from capbias_core.errors import CapbiasError
from capbias_core.language.device import AUTO, choose_device, halving
from capbias_core.language.files import loading
from capbias_core.vision.presets import BATCH, BEAMS, DESCRIBE, LENGTH, LINE, PRESETS, WHAT, Preset

# Weights that no caption depends on; checkpoints may lack them.
UNUSED = ("pooler", "position_ids")


@dataclass(frozen=True)
class TokenScores:
    """The T tokens of a given caption, without special tokens."""

    ids: list[int]
    texts: list[str]
    words: list[int]  # the index of each token's word in the caption, split at spaces
    log_probabilities: Tensor  # (T,) of each token, given the photograph and the tokens before it; with gradients


class Captioner:
    """The captioner in a folder; raises CapbiasError for another folder. Photographs are (height, width, 3) uint8 RGB,
    of any size. Numbers are 32-bit on a CPU, and as the weights were saved on a GPU."""

    def __init__(self, path: str, device: str = AUTO):
        self.path, self.device = path, choose_device(device)
        with loading(WHAT, path):
            import transformers

            transformers.utils.logging.set_verbosity_error()
            local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
            self.processor: Any = transformers.AutoProcessor.from_pretrained(path, **local)
            self.images: Any = getattr(self.processor, "image_processor", None)
            if self.images is None:  # saved apart, as for an encoder and a decoder that were put together
                self.images = transformers.AutoImageProcessor.from_pretrained(path, **local)
            tokenizer = getattr(self.processor, "tokenizer", None)
            self.tokenizer: Any = tokenizer or transformers.AutoTokenizer.from_pretrained(path, **local)
            if not getattr(self.tokenizer, "is_fast", False):
                raise ValueError("its tokenizer does not say where its tokens stand in a text")
            self.tokenizer.padding_side = "left"  # captions go on from the end of the prompt
            # With output_loading_info it gives a pair, which its types do not say.
            pair: Any = transformers.AutoModelForImageTextToText.from_pretrained(
                path, **local, dtype=torch.float32 if self.device.type == "cpu" else "auto", output_loading_info=True
            )
            model, loaded = pair
            # What is missing would be filled by chance.
            missing = sorted(name for name in loaded["missing_keys"] if not any(part in name for part in UNUSED))
            if missing:
                raise ValueError(f"it lacks {len(missing):,} of its weights, such as {missing[0]}")
            self.model = model.to(self.device).eval()
            kind = self.model.config.model_type
            self.preset = next(
                (preset for preset in PRESETS.values() if preset.kind == kind), Preset("", "", kind, until=LINE)
            )
            # The prompt: that of its kind, else in its chat template, else none.
            self.prompt = self.preset.prompt
            if not self.preset.name and getattr(self.processor, "chat_template", None):
                asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": DESCRIBE}]}]
                self.prompt = self.processor.apply_chat_template(asked, add_generation_prompt=True)

    @property
    def numbers(self) -> str:
        """Device and type of numbers, such as `on cpu, float32`."""
        return f"on {self.device.type}, {str(self.model.dtype).removeprefix('torch.')}"

    def captions(
        self, pixels: Sequence[np.ndarray], beams: int = BEAMS, length: int = LENGTH, batch: int = BATCH
    ) -> list[str]:
        """A caption for each photograph, with single spaces; '' if the captioner writes nothing.

        beams: searched at once (1 is greedy). length: tokens at most. batch: photographs at once, halved whenever
        memory is short. Raises CapbiasError if one alone does not fit.
        """
        captions: list[str] = []
        while left := len(pixels) - len(captions):
            most = min(batch, left)

            def written(size: int, done: int = len(captions)) -> list[str]:
                return self._generated(pixels[done : done + size], beams, length)

            try:
                part = halving(most, written)
            except MemoryError:
                raise CapbiasError(
                    f"The memory of {self.device.type} is too small for this captioner, even for one photograph at a "
                    "time.",
                    "Use fewer beams, a smaller captioner, or the CPU.",
                    "device",
                ) from None
            batch = len(part) if len(part) < most else batch
            captions += part
        return captions

    @torch.inference_mode()
    def _generated(self, pixels: Sequence[np.ndarray], beams: int, length: int) -> list[str]:
        given = self._inputs(pixels)
        free = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        ids = self.model.generate(**given, num_beams=beams, max_new_tokens=length, **free)
        asked = given.get("input_ids")
        if asked is not None and ids.shape[1] >= asked.shape[1] and torch.equal(ids[:, : asked.shape[1]], asked):
            ids = ids[:, asked.shape[1] :]  # some answer with the question in front
        texts = [text.strip() for text in self.tokenizer.batch_decode(ids, skip_special_tokens=True)]
        until = self.preset.until  # ends the caption in an answer
        return [" ".join((text.split(until)[0] if until else text).split()) for text in texts]

    def _inputs(self, pixels: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """The model's inputs on the device: pixel_values and, with a prompt, input_ids."""
        images = [Image.fromarray(picture) for picture in pixels]
        if self.prompt is None:
            given = self.images(images=images, return_tensors="pt")
        else:
            given = self.processor(images=images, text=[self.prompt] * len(images), return_tensors="pt", padding=True)
        kind = self.model.dtype
        return {
            name: tensor.to(self.device, kind if tensor.is_floating_point() else tensor.dtype)
            for name, tensor in given.items()
        }

    def token_scores(self, pixels: np.ndarray, caption: str) -> TokenScores:
        """The log-probability of each token of a given caption of one photograph (teacher forcing).

        Gradients flow if they are switched on. Raises CapbiasError for a caption without a token.
        """
        text = " ".join(caption.split())
        read = self.tokenizer(
            text, add_special_tokens=self._has_decoder(), return_offsets_mapping=True, return_special_tokens_mask=True
        )
        tokens = [number for number, special in enumerate(read["special_tokens_mask"]) if not special]
        if not tokens:
            raise CapbiasError("The caption has no words.")
        ids = torch.tensor([read["input_ids"]], device=self.device)
        given = self._inputs([pixels])
        if self._has_decoder():
            before = torch.cat([self._begin("decoder_start_token_id", ids), ids[:, :-1]], dim=1)
            logits = self.model(**given, decoder_input_ids=before).logits
        else:
            asked = given.pop("input_ids") if "input_ids" in given else self._begin("bos_token_id", ids)
            for name, tensor in given.items():  # what describes each token of the prompt continues for the caption
                if tensor.shape == asked.shape:
                    more = torch.ones_like(ids) if name == "attention_mask" else torch.zeros_like(ids)
                    given[name] = torch.cat([tensor, more], dim=1)
            # Some put the picture's tokens in front of the text: counted from the end, the caption is where it was.
            logits = self.model(**given, input_ids=torch.cat([asked, ids], dim=1)).logits[:, -ids.shape[1] - 1 : -1]
        logs = logits.float().log_softmax(dim=-1)  # (1, T, V)
        kept = ids[0, tokens].tolist()
        words = [text.count(" ", 0, read["offset_mapping"][number][1]) for number in tokens]
        chosen = logs.gather(2, ids[..., None])[0, tokens, 0]
        return TokenScores(kept, self.tokenizer.convert_ids_to_tokens(kept), words, chosen)

    def _has_decoder(self) -> bool:
        """Whether a separate decoder writes captions; otherwise they continue the prompt."""
        config = self.model.config
        return bool(config.is_encoder_decoder or config.get_text_config(decoder=True).is_encoder_decoder)

    def _begin(self, name: str, ids: Tensor) -> Tensor:
        """(1, 1) the first token of a caption, which the configuration calls `name`."""
        config = self.model.config
        configs = (config.get_text_config(decoder=True), config, self.model.generation_config)
        token = next(value for known in configs if (value := getattr(known, name, None)) is not None)
        return ids.new_full((1, 1), token)

    @property
    def vision_layer(self) -> nn.Module:
        """See `Preset.layer`; `grid` reads its output. Raises CapbiasError for a captioner without a preset."""
        if not self.preset.layer:
            raise self._without_map()
        module: Any = self.model
        for part in self.preset.layer.split("."):
            module = module[int(part)] if isinstance(module, nn.ModuleList) else getattr(module, part)
        return module

    def grid(self, output: Tensor | tuple) -> Tensor:
        """(N, C, h, w) the map in an output of `vision_layer`: its patches in rows, without the class token. The map
        covers `seen` of the photograph. Raises CapbiasError for an output without a map."""
        output = output if isinstance(output, Tensor) else output[0]
        if output.ndim == 4:
            return output
        tokens = output.shape[1]
        side = math.isqrt(tokens)
        if tokens - side * side > 1:  # a square of patches after at most one class token
            raise self._without_map()
        return output[:, tokens - side * side :].transpose(1, 2).unflatten(2, (side, side))

    def seen(self, height: int, width: int) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2, in pixels, of the part of a photograph of this size that the captioner sees. Some processors
        crop the middle."""
        cut = self.images.crop_size if getattr(self.images, "do_center_crop", False) else None
        size = self.images.size
        if not cut or not getattr(size, "shortest_edge", None):
            return 0.0, 0.0, float(width), float(height)
        scale = min(height, width) / size.shortest_edge
        across, down = cut.width * scale, cut.height * scale
        return (width - across) / 2, (height - down) / 2, (width + across) / 2, (height + down) / 2

    def _without_map(self) -> CapbiasError:
        return CapbiasError(
            f"Captioners of the kind {self.model.config.model_type!r} have no known map of the image.",
            "Use one of the presets, such as blip or git.",
        )
