#!/usr/bin/env python3
"""Prints where scapy's definitions of the device's structures have their fields, and one filled example of each.

Run by a developer with python3-scapy and tests/mlx5_prm_structs.py of an rdma-core source tree; the output is what
scapy_vectors.txt holds, and gtest_prm compares src/prm with it. Per structure:

    struct NAME BYTES
    NAME OFFSET WIDTH VALUE      of every field that is not reserved, in bits; VALUE in hexadecimal
    hex BYTES                    all these values in place, trailing zeros left out

A place is found by building the structure with nothing but ones in that field. Values are made from the names.

usage: make_scapy_vectors.py RDMA_CORE/tests > scapy_vectors.txt
"""
import hashlib
import sys

sys.path.insert(0, sys.argv[1])
import mlx5_prm_structs as prm  # noqa: E402  pylint: disable=wrong-import-position
from scapy.fields import BitField, FieldListField, MACField, PacketField, PacketListField, PadField  # noqa: E402
from scapy.fields import MultipleTypeField, StrFixedLenField  # noqa: E402

STRUCTURES = """
    AllocPdIn AllocPdOut SwCqc CreateCqIn CreateCqOut SwAds SwQpc CreateQpIn CreateQpOut ModifyQpIn ModifyQpOut
    QueryQpIn QueryQpOut SwEqc CreateEqIn CreateEqOut MadIfcIn MadIfcOut PaosReg AccessPaosRegisterIn CompEvent CqError
    PortStateChangeEvent SwEqe QueryHcaVportContextIn HcaVportContext QueryHcaVportContextOut QueryHcaVportGidIn
    IbGidCmd QueryHcaVportGidOut QueryHcaCapIn CmdHcaCap QueryCmdHcaCapOut AllocFlowCounterIn AllocFlowCounterOut
    DeallocFlowCounterIn QueryFlowCounterIn TrafficCounter QueryFlowCounterOut SwMkc CreateMkeyIn CreateMkeyOut
    CmdHcaCap2 OdpPerTransportServiceCap OdpSchemeCap OdpCap
""".split()


def ones(field):
    """The value of a field that has every bit set, or None where it has no bits."""
    while isinstance(field, PadField):
        field = field.fld
    if isinstance(field, PacketListField):
        return None
    if isinstance(field, PacketField):
        return field.cls(b"\xff" * len(bytes(field.cls())))
    if isinstance(field, FieldListField):
        return [(1 << 32) - 1] * len(field.default) or None
    if isinstance(field, MACField):
        return "ff:ff:ff:ff:ff:ff"
    if isinstance(field, StrFixedLenField):
        return b"\xff" * field.length_from(None)
    if isinstance(field, MultipleTypeField):
        return b"\xff" * 28
    return (1 << (field.size if isinstance(field, BitField) else field.sz * 8)) - 1


def number(value, bits):
    return bin(int.from_bytes(value, "big"))[2:].zfill(bits)


def place(cls, field):
    filled = ones(field)
    if filled is None:
        return None
    # An event type that selects no structure leaves the event's data as plain bytes.
    rest = {"event_type": 0xff} if cls is prm.SwEqe and field.name == "event_data" else {}
    base, data = bytes(cls(**rest)), bytes(cls(**rest, **{field.name: filled}))
    # Opcodes have a default that is not zero: what matters is which bits are ones now and can be zero.
    if isinstance(filled, int):
        base = bytes(cls(**{field.name: 0}))
    bits = number(bytes(a ^ b for a, b in zip(base, data)), len(data) * 8)
    begin, end = bits.find("1"), bits.rfind("1") + 1
    if "0" in bits[begin:end]:
        raise ValueError(f"{cls.__name__}.{field.name} is in pieces")
    return begin, end - begin


def value_of(cls, name, width):
    digest = hashlib.sha256(f"{cls.__name__}.{name}".encode()).digest()
    return int.from_bytes(digest * (width // 256 + 1), "big") & ((1 << width) - 1)


def describe(cls):
    size = len(bytes(cls()))
    print(f"struct {cls.__name__} {size}")
    example = 0
    for field in cls.fields_desc:
        where = place(cls, field)
        if where is None or field.name.startswith("reserved"):
            continue
        offset, width = where
        value = value_of(cls, field.name, width)
        example |= value << (size * 8 - offset - width)
        print(f"{field.name} {offset:#x} {width} {value:x}")
    # What scapy builds from the values of its plain fields has to agree with the places found one by one.
    plain = {field.name: value_of(cls, field.name, place(cls, field)[1]) for field in cls.fields_desc
             if isinstance(ones(field), int) and not field.name.startswith("reserved")}
    built = int.from_bytes(bytes(cls(**plain)), "big")
    for name, value in plain.items():
        offset, width = place(cls, cls(**plain).get_field(name))
        if built >> (size * 8 - offset - width) & ((1 << width) - 1) != value:
            raise ValueError(f"{cls.__name__}.{name}: built otherwise than placed")
    print(f"hex {example.to_bytes(size, 'big').hex().rstrip('0') or '0'}")


for structure in STRUCTURES:
    describe(getattr(prm, structure))
