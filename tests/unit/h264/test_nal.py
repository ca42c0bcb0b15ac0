"""Test bits, parameter sets and slice headers against the parser of ffmpeg."""

import re
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from assembling import rbsp_of, units_of
from hypothesis import given, settings
from hypothesis import strategies as st

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.h264 import bits as nal
from goalreel.h264.parameter_sets import StreamParameters, pps, sps
from goalreel.h264.slice_reader import read_slices
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal

SIZE = (48, 32)
ZEROS = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 255]), max_size=40).map(bytes)
X264 = "-profile:v baseline -qp 40 -x264-params keyint=1:no-deblock=1:psy=0:ipratio=1:aq-mode=0"


def x264(more=""):
    """Return an Annex B stream of fading noise."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (SIZE[1] * 3 // 2, SIZE[0]))
    frames = [(noise * (12 - i) // 12).astype(np.uint8) for i in range(12)]
    source = ["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", "48x32", "-i", "pipe:0"]
    coded = ["-c:v", "libx264", "-threads", "1", *f"{X264}{more}".split(), "-f", "h264", "pipe:1"]
    return ffmpeg.output([*source, *coded], frames)


def traced(stream, tmp_path):
    """Return the syntax elements that ffmpeg reads in each NAL unit of a stream."""
    path = tmp_path / "stream.h264"
    path.write_bytes(stream)
    command = [ffmpeg.executable(), "-hide_banner", "-f", "h264", "-i", path, "-c", "copy"]
    command += ["-bsf:v", "trace_headers", "-f", "null", "-"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    output = output[output.index("Output #0") :]  # the lines before come from probing
    units = []
    pattern = r"\] (\d+) +(\w+)\S* +([01]+) = (-?\d+)$"
    for place, name, code, value in re.findall(pattern, output, re.MULTILINE):
        if name == "forbidden_zero_bit":
            units.append({})
        units[-1].setdefault(name, int(value))
        if name != "cabac_alignment_one_bit":
            units[-1]["end"] = int(place) + len(code) - 8  # without the NAL unit header
    return units


@given(ZEROS)
def test_escapes_hide_start_codes_and_are_removed(data):
    unit = nal.pack(3, nal.SPS, data + b"\x80")
    assert not re.search(rb"\x00\x00[\x00-\x02]|\x00\x00\x03[^\x00-\x03]", unit, re.DOTALL)
    assert rbsp_of(unit) == data + b"\x80"


@pytest.mark.parametrize(
    ("size", "fps", "level"),
    [
        ((600, 400), 30, 30),
        ((600, 400), 60, 31),
        ((64, 48), 15, 10),
        ((176, 144), 30, 11),
        ((1920, 1080), 30, 40),
        ((1920, 1080), 60, 42),
        ((640, 362), Fraction(30000, 1001), 30),
        ((3838, 2), 1, 40),
    ],
)
def test_ffmpeg_parses_parameter_sets(size, fps, level, tmp_path):
    stream = StreamParameters(size, fps)
    columns, rows = stream.macroblocks
    picture = slice_nal(SliceHeader("I", 0, idr_pic_id=0, ref_idc=3), np.ones(4, np.uint8))
    units = nal.annex_b([sps(stream), pps(stream), picture])
    sequence, parameters, header = traced(units, tmp_path)
    wanted = {
        **{"profile_idc": 77, "constraint_set1_flag": 1, "level_idc": level},
        **{"pic_width_in_mbs_minus1": columns - 1, "pic_height_in_map_units_minus1": rows - 1},
        **{"num_units_in_tick": Fraction(fps).denominator, "fixed_frame_rate_flag": 1},
        **{"time_scale": 2 * Fraction(fps).numerator, "max_num_reorder_frames": 0},
        **{"chroma_sample_loc_type_top_field": 1, "max_dec_frame_buffering": 2},
        "rbsp_stop_one_bit": 1,
    }
    assert {name: sequence[name] for name in wanted} == wanted
    assert parameters["weighted_pred_flag"] and parameters["rbsp_stop_one_bit"]
    assert header["nal_unit_type"] == 5


def test_parameter_sets_reject_stream_above_levels():
    for stream in [
        StreamParameters((20000, 16), 1),
        StreamParameters((16384, 16384), 1),
        StreamParameters((8192, 4320), 500),
    ]:
        with pytest.raises(GoalreelError, match="level"):
            sps(stream)


@st.composite
def headers(draw):
    """Return slice headers of any kind that goalreel writes."""
    is_idr = draw(st.booleans())
    ref_idc = draw(st.integers(1 if is_idr else 0, 3))
    kind = "I" if is_idr else draw(st.sampled_from("IP"))
    weight = st.tuples(st.integers(0, 127), st.integers(-128, 127))
    return SliceHeader(
        type=kind,
        first_mb=draw(st.integers(0, 5)),
        idr_pic_id=draw(st.integers(0, 65535)) if is_idr else None,
        poc_lsb=draw(st.integers(0, 65535)),
        ref_idc=ref_idc,
        qp=draw(st.integers(0, 51)),
        colors=tuple(draw(st.lists(st.tuples(*[weight] * 3), max_size=3))) if kind == "P" else (),
    )


@settings(max_examples=4, deadline=None)
@given(st.lists(headers(), min_size=10, max_size=30))
def test_ffmpeg_parses_slice_headers(tmp_path_factory, drawn):
    first = SliceHeader("I", 0, idr_pic_id=0, ref_idc=3)  # ffmpeg drops what comes before one
    units = [slice_nal(header, np.ones(9, np.uint8)) for header in [first, *drawn]]
    stream = nal.annex_b([sps(StreamParameters(SIZE, 30)), pps(StreamParameters(SIZE, 30)), *units])
    traced_slices = traced(stream, tmp_path_factory.mktemp("trace"))
    for header, read in zip(drawn, traced_slices[3:], strict=True):
        wanted = {
            **{"first_mb_in_slice": header.first_mb},
            **{"frame_num": int(header.type == "P"), "pic_order_cnt_lsb": header.poc_lsb},
            **{"slice_qp_delta": header.qp - 26, "disable_deblocking_filter_idc": 1},
            **{"nal_ref_idc": header.ref_idc, "idr_pic_id": header.idr_pic_id},
            **{"nal_unit_type": 1 if header.idr_pic_id is None else 5},
            **{"end": len(header_bits(header).bits)},
        }
        if header.colors:
            wanted["num_ref_idx_l0_active_minus1"] = len(header.colors)
            changed = [luma for luma, _, _ in header.colors if luma != (32, 0)]
            for weight, offset in changed[:1]:
                wanted |= {"luma_weight_l0": weight, "luma_offset_l0": offset}
        assert {name: read.get(name) for name in wanted} == wanted
        assert read["slice_type"] % 5 == {"P": 0, "I": 2}[header.type]  # Table 7-6


@pytest.mark.parametrize("slices", [1, 2])
def test_x264_slices_are_read_as_by_ffmpeg(tmp_path, slices):
    stream = x264(f":slices={slices}")
    traced_slices = [unit for unit in traced(stream, tmp_path) if unit["nal_unit_type"] == 5]
    units = [unit for unit in units_of(stream) if unit[0] & 31 == nal.IDR]
    data, starts, lengths = read_slices(stream, SIZE, 40)
    assert len(starts) == len(traced_slices) == len(units) == 12 * slices
    found = np.unpackbits(data)
    for start, length, unit, read in zip(starts, lengths, units, traced_slices, strict=True):
        whole = "".join(f"{byte:08b}" for byte in rbsp_of(unit)).rstrip("0")[:-1]
        shown = "".join(map(str, found[start : start + length]))
        assert shown == whole[read["end"] :]


@pytest.mark.parametrize(
    "more", [":chroma-qp-offset=2", ":constrained-intra=1", ":no-deblock=0", ":ipratio=2"]
)
def test_reader_rejects_other_x264_settings(more):
    with pytest.raises(AssertionError, match="x264 coded .* please report"):
        read_slices(x264(more), SIZE, 40)
