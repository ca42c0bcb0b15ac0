"""Bits, NAL units, parameter sets and slice headers, held against ffmpeg's reading of them."""

import contextlib
import re
import subprocess
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.h264 import bits, nal
from goalreel.h264.bits import BitStrings, joined
from goalreel.h264.parameter_sets import Stream, pps, sps
from goalreel.h264.slice_reader import read_pps, read_slice, read_sps
from goalreel.h264.slices import SliceHeader, header_bits, poc_position, slice_nal

SIZE = (48, 32)
ZEROS = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 255]), max_size=40).map(bytes)
BITS = st.lists(st.integers(0, 1), max_size=80).map(lambda values: np.array(values, np.uint8))
X264 = "-profile:v baseline -qp 40 -x264-params keyint=1:no-deblock=1:psy=0"


def pictures(stream):
    """Return each slice of a stream of x264's as it is read."""
    read = {nal.SPS: read_sps, nal.PPS: read_pps}
    units = nal.split(stream)
    sets = [read[unit.type](unit.rbsp) for unit in units[:2]]
    return [read_slice(unit, *sets) for unit in units if unit.type == nal.IDR]


@cache
def x264(arguments=X264):
    """Return an Annex B stream of a fading noise."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (SIZE[1] * 3 // 2, SIZE[0]))
    frames = [(noise * (12 - i) // 12).astype(np.uint8) for i in range(12)]
    source = ["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", "48x32", "-i", "pipe:0"]
    coded = ["-c:v", "libx264", "-threads", "1", *arguments.split(), "-f", "h264", "pipe:1"]
    return ffmpeg.output([*source, *coded], frames)[0]


def traced(stream, tmp_path):
    """Return what ffmpeg reads in each NAL unit of a stream: a dictionary of syntax elements."""
    path = tmp_path / "stream.h264"
    path.write_bytes(stream)
    command = [ffmpeg.executable(), "-hide_banner", "-f", "h264", "-i", path, "-c", "copy"]
    command += ["-bsf:v", "trace_headers", "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    said = said[said.index("Output #0") :]  # before it stand the parameter sets found by probing
    units = []
    for place, name, code, value in re.findall(
        r"\] (\d+) +(\w+)\S* +([01]+) = (-?\d+)$", said, re.MULTILINE
    ):
        if name == "forbidden_zero_bit":
            units.append({})
        units[-1].setdefault(name, int(value))
        if name != "cabac_alignment_one_bit":
            units[-1]["end"] = int(place) + len(code) - 8  # without the unit's first byte
    return units


@given(st.lists(st.tuples(st.sampled_from("use"), st.integers(0, 2**32 - 2), st.booleans())))
def test_what_is_written_is_read(values):
    writer, wanted = bits.BitWriter(), []
    for kind, value, negative in values:
        if kind == "u":
            writer.u(32, value)
        elif kind == "e":
            writer.ue(value)
        else:
            value = (value >> 1) * (-1 if negative else 1)
            writer.se(value)
        wanted.append(value)
    reader = bits.BitReader(bits.closed(writer.array()))
    read = {"u": lambda: reader.u(32), "e": reader.ue, "s": reader.se}
    assert [read[kind]() for kind, _, _ in values] == wanted
    assert reader.position == reader.end() == len(writer.array())
    reader.trailing()
    assert reader.remaining == 0


def test_bits_that_are_none_are_refused():
    for wrong in [
        lambda: bits.BitWriter().u(3, 8),
        lambda: bits.BitWriter().ue(2**32 - 1),
        lambda: bits.BitReader(b"\x00").u(9),
        lambda: bits.BitReader(b"\x00\x00\x00").ue(),
        lambda: bits.BitReader(bytes(4) + b"\xff" * 5).ue(),
        lambda: bits.BitReader(b"\x00").end(),
        lambda: bits.BitReader(b"\x80\x00").trailing(),
        lambda: bits.escape(b"\x01\x00"),
    ]:
        with pytest.raises(bits.BitError):
            wrong()


@given(ZEROS)
def test_escapes_hide_start_codes_and_come_off_again(data):
    rbsp = data + b"\x80"
    payload = bits.escape(rbsp)
    assert not re.search(rb"\x00\x00[\x00-\x02]|\x00\x00\x03[^\x00-\x03]", payload, re.DOTALL)
    assert bits.unescape(payload) == rbsp


@example(b"\x00\x00\x03\x04")
@example(b"\x00\x00\x02")
@given(ZEROS)
def test_what_no_escape_makes_is_refused(payload):
    try:
        rbsp = bits.unescape(payload)
    except bits.BitError:
        return
    if not rbsp.endswith(b"\x00"):  # cabac_zero_words are read, but never written
        assert bits.escape(rbsp) == payload


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 31), ZEROS)), st.integers(0, 3))
def test_units_are_found_again(units, zeros):
    wanted = [nal.Nal(ref_idc, kind, data + b"\x80") for ref_idc, kind, data in units]
    packed = [nal.pack(unit.ref_idc, unit.type, unit.rbsp) for unit in wanted]
    assert nal.split(bytes(zeros) * bool(units) + nal.annex_b(packed) + bytes(zeros)) == wanted
    assert nal.split(b"".join(b"\x00\x00\x01" + unit for unit in packed)) == wanted


@pytest.mark.parametrize("wrong", [b"\x01", b"\x00\x00\x01", b"\x00\x00\x01\x80", b"\x00\x00\x02"])
def test_what_is_no_stream_is_refused(wrong):
    with pytest.raises(GoalreelError):
        nal.split(wrong)


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
def test_ffmpeg_reads_our_parameter_sets_as_they_are_meant(size, fps, level, tmp_path):
    stream = Stream(size, fps)
    columns, rows = stream.macroblocks
    picture = slice_nal(SliceHeader("I", 0, idr_pic_id=0, ref_idc=3), np.ones(4, np.uint8))
    sequence, parameters, header = traced(
        nal.annex_b([sps(stream), pps(stream), picture]), tmp_path
    )
    wanted = {
        **{"profile_idc": 77, "constraint_set0_flag": 0, "constraint_set1_flag": 1},
        **{"level_idc": level, "log2_max_frame_num_minus4": 0, "pic_order_cnt_type": 0},
        **{"log2_max_pic_order_cnt_lsb_minus4": 12, "max_num_ref_frames": 2},
        **{"pic_width_in_mbs_minus1": columns - 1, "pic_height_in_map_units_minus1": rows - 1},
        **{"frame_mbs_only_flag": 1, "direct_8x8_inference_flag": 1},
        **{"gaps_in_frame_num_allowed_flag": 0, "video_full_range_flag": 0},
        **{"colour_primaries": 1, "transfer_characteristics": 1, "matrix_coefficients": 1},
        **{"chroma_sample_loc_type_top_field": 1, "chroma_sample_loc_type_bottom_field": 1},
        **{"num_units_in_tick": Fraction(fps).denominator, "fixed_frame_rate_flag": 1},
        **{"time_scale": 2 * Fraction(fps).numerator, "nal_hrd_parameters_present_flag": 0},
        **{"max_num_reorder_frames": 0, "max_dec_frame_buffering": 2, "rbsp_stop_one_bit": 1},
    }
    assert {name: sequence[name] for name in wanted} == wanted
    wanted = {
        **{"pic_parameter_set_id": 0, "entropy_coding_mode_flag": 0, "num_slice_groups_minus1": 0},
        **{"num_ref_idx_l0_default_active_minus1": 0, "weighted_pred_flag": 1},
        **{"pic_init_qp_minus26": 0, "chroma_qp_index_offset": 0},
        **{"redundant_pic_cnt_present_flag": 0, "constrained_intra_pred_flag": 0},
        **{"deblocking_filter_control_present_flag": 1},
        **{"bottom_field_pic_order_in_frame_present_flag": 0, "rbsp_stop_one_bit": 1},
    }
    assert {name: parameters[name] for name in wanted} == wanted
    assert "transform_8x8_mode_flag" not in parameters
    assert header["nal_unit_type"] == 5


def test_streams_beyond_the_highest_level_are_refused():
    for stream in [Stream((20000, 16), 1), Stream((16384, 16384), 1), Stream((8192, 4320), 500)]:
        with pytest.raises(GoalreelError, match="level"):
            sps(stream)
    with pytest.raises(GoalreelError, match="fps"):
        sps(Stream((600, 400), 0))


@st.composite
def headers(draw):
    """Draw slice headers of our streams, IDR and not, kept and not."""
    is_idr = draw(st.booleans())
    ref_idc = draw(st.integers(1 if is_idr else 0, 3))
    kind = "I" if is_idr else draw(st.sampled_from("IP"))
    weight = st.tuples(st.integers(0, 127), st.integers(-128, 127))
    return SliceHeader(
        type=kind,
        first_mb=draw(st.integers(0, 5)),
        frame_num=0 if is_idr else draw(st.integers(1, 15)),
        idr_pic_id=draw(st.integers(0, 65535)) if is_idr else None,
        poc_lsb=draw(st.integers(0, 65535)),
        ref_idc=ref_idc,
        qp=draw(st.integers(0, 51)),
        colours=tuple(draw(st.lists(st.tuples(*[weight] * 3), max_size=3))) if kind == "P" else (),
    )


@given(headers(), BITS)
def test_a_slice_is_its_header_and_its_data(header, data):
    unit = nal.unpack(slice_nal(header, data))
    assert (unit.ref_idc, unit.type) == (header.ref_idc, 1 if header.idr_pic_id is None else 5)
    whole = np.concatenate([header_bits(header), data])
    assert unit.rbsp == bits.closed(whole)
    reader = bits.BitReader(unit.rbsp)
    reader.position = poc_position(header)
    assert reader.u(16) == header.poc_lsb


@settings(max_examples=4, deadline=None)
@given(st.lists(headers(), min_size=10, max_size=30))
def test_ffmpeg_reads_our_slice_headers_as_they_are_meant(tmp_path_factory, drawn):
    first = SliceHeader("I", 0, idr_pic_id=0, ref_idc=3)  # ffmpeg drops what comes before one
    units = [slice_nal(header, np.ones(9, np.uint8)) for header in [first, *drawn]]
    stream = nal.annex_b([sps(Stream(SIZE, 30)), pps(Stream(SIZE, 30)), *units])
    told = traced(stream, tmp_path_factory.mktemp("trace"))
    for header, read in zip(drawn, told[3:], strict=True):
        wanted = {
            **{"first_mb_in_slice": header.first_mb},
            **{"frame_num": header.frame_num, "pic_order_cnt_lsb": header.poc_lsb},
            **{"slice_qp_delta": header.qp - 26, "disable_deblocking_filter_idc": 1},
            **{"nal_ref_idc": header.ref_idc, "idr_pic_id": header.idr_pic_id},
            **{"nal_unit_type": 1 if header.idr_pic_id is None else 5},
            **{"end": len(header_bits(header))},
        }
        if header.colours:
            wanted["num_ref_idx_l0_active_minus1"] = len(header.colours)
            changed = [luma for luma, _, _ in header.colours if luma != (32, 0)]
            for weight, offset in changed[:1]:
                wanted |= {"luma_weight_l0": weight, "luma_offset_l0": offset}
        assert {name: read.get(name) for name in wanted} == wanted
        assert read["slice_type"] % 5 == {"P": 0, "I": 2}[header.type]  # Table 7-6


def test_x264s_slices_are_read_as_ffmpeg_reads_them(tmp_path):
    told = traced(x264(), tmp_path)
    initial = 26 + next(unit["pic_init_qp_minus26"] for unit in told if unit["nal_unit_type"] == 8)
    wanted = [unit for unit in told if unit["nal_unit_type"] == 5]
    units = [unit for unit in nal.split(x264()) if unit.type == nal.IDR]
    found = pictures(x264())
    assert len(found) == len(wanted) == 12
    for picture, unit, read in zip(found, units, wanted, strict=True):
        assert (picture.macroblocks, picture.qp) == (6, initial + read["slice_qp_delta"])
        whole = np.unpackbits(
            np.frombuffer(unit.rbsp, np.uint8), count=bits.BitReader(unit.rbsp).end()
        )
        assert np.array_equal(picture.data, whole[read["end"] :])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("-profile:v high -x264-params keyint=1", "profile_idc 100; expected: 66"),
        ("-profile:v baseline -x264-params keyint=1:psy=0", "disable_deblocking_filter_idc 0"),
        (f"{X264}:chroma-qp-offset=2", "chroma_qp_index_offset"),
        (f"{X264}:constrained-intra=1", "constrained_intra_pred_flag 1; expected: 0"),
        (f"{X264}:slices=2", "first_mb_in_slice"),
    ],
)
def test_what_x264_was_not_asked_for_is_refused(arguments, fault):
    with pytest.raises(GoalreelError, match=fault):
        pictures(x264(arguments))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=6), st.floats(0, 1), st.booleans())
def test_broken_streams_are_refused_in_words(flips, kept, early):
    data = bytearray(x264())
    reach = 8 * (200 if early else len(data))  # the parameter sets are at the beginning
    for flip in flips:
        data[int(flip * reach) // 8] ^= 1 << int(flip * reach) % 8
    with contextlib.suppress(GoalreelError, LookupError):  # LookupError: of `pictures` itself
        pictures(bytes(data[: round(kept * len(data))]))


def test_strings_of_bits_are_joined_wherever_they_begin_and_whatever_is_around_them():
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, 64, np.uint8)
    starts, lengths = rng.integers(0, 400, (500, 3)), rng.integers(0, 80, (500, 3))
    lengths[:20, 1] = 0
    made, bounds = joined(BitStrings(data, starts, lengths))
    text = "".join(f"{byte:08b}" for byte in data)
    for row, (first, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        pairs = zip(starts[row], lengths[row], strict=True)
        bits = "".join(text[start : start + length] for start, length in pairs)
        shown = "".join(f"{byte:08b}" for byte in made[first:end])
        assert shown == bits.ljust(-(-len(bits) // 8) * 8, "0")
