#!/usr/bin/env python3
"""Prints where the C headers that declare the device's structures one byte per bit have their fields.

Run by a developer on rdma-core's providers/mlx5/mlx5_ifc.h and UCX's src/uct/ib/mlx5/dv/ib_mlx5_ifc.h; the output is
what ifc_vectors.txt holds, and gtest_prm compares src/prm with it. Per structure:

    struct SOURCE.NAME BYTES
    NAME OFFSET WIDTH            of every field that is not reserved, in bits

usage: make_ifc_vectors.py RDMA_CORE/providers/mlx5/mlx5_ifc.h UCX/src/uct/ib/mlx5/dv/ib_mlx5_ifc.h > ifc_vectors.txt
"""
import re
import sys

STRUCTURES = """
    cmd_hca_cap cmd_hca_cap_2 atomic_caps odp_per_transport_service_cap odp_scheme_cap odp_cap roce_cap
    device_mem_cap query_hca_cap_in mkc klm mtt create_mkey_in create_mkey_out destroy_mkey_in create_psv_in
    create_psv_out destroy_psv_in ads qpc qpc_ext create_qp_in create_qp_out destroy_qp_in rst2init_qp_in
    init2rtr_qp_in init2rtr_qp_out rtr2rts_qp_in rts2rts_qp_in init2init_qp_in init2init_qp_out modify_qp_in
    query_qp_in query_qp_out dctc create_dct_in create_dct_out destroy_dct_in query_dct_in query_dct_out cqc
    create_cq_in create_cq_out destroy_cq_in wq rmpc create_rmp_in create_rmp_out destroy_rmp_in
    tag_matching_topology_context xrqc create_xrq_in create_xrq_out destroy_xrq_in set_xrq_dc_params_entry_in eqc
    create_eq_in create_eq_out destroy_eq_in general_obj_in_cmd_hdr general_obj_out_cmd_hdr alias_context
    create_alias_obj_in create_alias_obj_out allow_other_vhca_access_in query_hca_vport_context_in hca_vport_context
    query_hca_vport_context_out lagc lag_context query_lag_out access_register_in alloc_pd_out dealloc_pd_in
    alloc_uar_out dealloc_uar_in alloc_xrcd_out dealloc_xrcd_in alloc_transport_domain_out
    dealloc_transport_domain_in alloc_q_counter_out dealloc_q_counter_in umem create_umem_in create_umem_out
    destroy_umem_in
""".split()


def bodies(path):
    """Name and text of every structure, of unions too, without comments; `inner` unions keep their first member."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    found = re.findall(r"^(struct|union) +\w*?(?:ifc|ib_mlx5)_(\w+)_bits \{(.*?)\n\};", text, re.S | re.M)
    for kind, name, body in found:
        inner = re.sub(r"union \{\s*([^;]*;).*?\};", r"\1", body, flags=re.S)
        yield name, kind, [line.strip() for line in inner.split(";") if line.strip()]


def layouts(path):
    source = {name: (kind, lines) for name, kind, lines in bodies(path)}
    known = {}

    def layout(name):
        if name not in known:
            kind, lines = source[name]
            fields, end = [], 0
            for line in lines:
                begin = 0 if kind == "union" else (fields[-1][1] + fields[-1][2] if fields else 0)
                width = 1
                plain = re.fullmatch(r"(?:u8|uint8_t)\s+(\w+)((?:\[\w*\])+)", line)
                nested = re.fullmatch(r"(?:struct|union)\s+\w*?(?:ifc|ib_mlx5)_(\w+)_bits\s+(\w+)(\[\w*\])?", line)
                if plain:
                    field, sizes = plain[1], re.findall(r"\[(\w*)\]", plain[2])
                elif nested:
                    field, sizes = nested[2], re.findall(r"\[(\w*)\]", nested[3] or "")
                    width = layout(nested[1])[1] * 8
                else:
                    raise ValueError(f"{path}: {name}: cannot read {line!r}")
                for size in sizes:
                    width *= int(size or "0", 0)
                fields.append((field, begin, width))
                end = max(end, begin + width)
            known[name] = (fields, end // 8)
        return known[name]

    return {name: layout(name) for name in STRUCTURES if name in source}


for label, header in zip(("rdma_core", "ucx"), sys.argv[1:3], strict=True):
    for structure, (members, size) in layouts(header).items():
        print(f"struct {label}.{structure} {size}")
        for member, offset, width in members:
            if width and not member.startswith("reserved"):
                print(f"{member} {offset:#x} {width}")
