import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.errors import DamagedError
from trainflow_tui.monitoring.nodes import nvidia_smi
from trainflow_tui.monitoring.nodes.parse import node_parse_json, parse_tool_output
from trainflow_tui.monitoring.nodes.records import DeviceError, ToolWarning


def read(text):
    return nvidia_smi.parse(text, "out.txt")


def test_units_may_stand_in_the_header_alone():
    read_without = read("index, power.draw [W], memory.used [MiB]\n3, 71.50, 4\n")
    read_with = read("index, power.draw [W], memory.used [MiB]\n3, 71.50 W, 4 MiB\n")
    assert read_without.devices == read_with.devices
    assert (read_with.devices[0].power_w, read_with.devices[0].mem_used_mib) == (71.5, 4)


def test_a_column_that_was_not_asked_for_is_not_known():
    (device,) = read("index, temperature.gpu\n0, 41\n").devices
    assert device.util_pct is None
    assert device.throttle is None


@pytest.mark.parametrize("name", ["clocks_event_reasons.active", "clocks_throttle_reasons.active"])
def test_both_names_of_the_throttle_column_give_the_reasons(name):
    parsed = read(f"index, {name}\n0, 0x0000000000000048\n1, 0x0000000000000000\n2, [N/A]\n")
    assert [device.throttle for device in parsed.devices] == [("hw_slowdown", "hw_thermal_slowdown"), (), None]
    assert [(warning.device, warning.code) for warning in parsed.warnings] == [
        (0, "hw_slowdown"),
        (0, "hw_thermal_slowdown"),
    ]


def test_a_failing_field_is_an_error_of_the_device_and_not_null():
    parsed = read("index, temperature.gpu, utilization.gpu [%]\n0, [Unknown Error], [N/A]\n")
    assert parsed.devices[0].errors == (DeviceError(field="temperature.gpu", error="Unknown Error"),)
    assert parsed.devices[0].util_pct is None
    assert parsed.warnings == (ToolWarning(code="device_error", device=0, text="temperature.gpu: Unknown Error"),)


def test_an_unknown_column_and_an_unreadable_number_are_kept_as_printed():
    (device,) = read("index, clocks.sm [MHz], temperature.gpu\n0, 1980 MHz, warm\n").devices
    assert device.other == {"clocks.sm": "1980 MHz", "temperature.gpu": "warm"}
    assert device.temp_c is None


def test_a_row_of_another_length_is_told_and_no_device():
    parsed = read("index, temperature.gpu\n0, 41\n1, 42, 43\n")
    assert len(parsed.devices) == 1
    assert [(warning.code, warning.row) for warning in parsed.warnings] == [("row_damaged", 2)]


@pytest.mark.parametrize("gap", ["", " "])
def test_a_lost_device_is_named_and_the_others_are_not_listed(gap):
    parsed = read(f"Unable to determine the device handle for GPU{gap}0000:BA:00.0: GPU is lost.  Reboot the system\n")
    (error,) = parsed.errors
    assert (error.code, error.bus_id) == ("gpu_lost", "0000:BA:00.0")
    assert (parsed.devices, parsed.state, parsed.exit_code) == ((), "critical", None)


def test_a_library_that_does_not_fit_the_driver_is_no_answer():
    parsed = read("Failed to initialize NVML: Driver/library version mismatch\n")
    assert parsed.errors[0].code == "driver_unreachable"


def test_keys_that_do_not_apply_are_absent():
    document = node_parse_json(parse_tool_output(b"index, temperature.gpu\n0, 41\n", "gpu.csv"))
    assert "rows" not in document
    assert "errors" not in document
    assert document["warnings"] == []


def test_rows_without_header_are_taken_by_content_or_by_file_name():
    assert read("0, 41, P0\n") is None
    assert nvidia_smi.parse("0, 41, P0\n", "nvidia-smi.csv").rows == ((0.0, 41.0, "P0"),)
    assert read("0, [N/A]\n").rows == ((0.0, None),)
    assert nvidia_smi.parse('{"a": 1, "b": 2}', "nvidia.json") is None


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_parser_raise(text):
    for candidate in (text, f"index, name, temperature.gpu\n{text}", f"0, [N/A], {text}"):
        parsed = nvidia_smi.parse(candidate, "nvidia-smi")
        if parsed is not None:
            msgspec.json.encode(parsed)


def test_no_output_is_refused():
    with pytest.raises(DamagedError) as refusal:
        parse_tool_output(b" \n\0", "empty.txt")
    assert refusal.value.code == "node-output-empty"
