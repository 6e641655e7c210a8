"""The transfers of the two-host form and of the form with a DPU, and which claims each is about."""
import dataclasses

from capabilities import ATOMICS
from claims import About

# Windows of 1 MB.
STRIDED = "strided(16384,64,128)"
ROWS = "strided(1024,1024,4096)"
FACE = "strided([1024,128]x8,[131072,1024])"
LIST = "iov(2000,64..4096,seed=1)"
VERTICES = "interleaved(3*4@0,300,4;1:3*4@0,300,4;2:2*4@0,200,4)"
WORDS = "strided(64,8,24)"
PLAIN = ("--method", "contig", "-s")

SERVER, CLIENT, ONE_HOST = "server", "client", "one host"
DPU_SERVER, DPU_CLIENT = "host of the DPU", "DPU"
CAPABILITIES, FAILURE = "capabilities", "failure"
BOTH = (SERVER, CLIENT)
RC, RC_VERBS, DC, UD = "rc_x,lay_copy", "rc_v,lay_copy", "dc_x,ud_x,lay_copy", "ud_x,lay_copy"

# What the other forms of the command are called in a reason.
FORMS = {
    CLIENT: "two hosts (--server, --client)",
    ONE_HOST: "the form for one host, with the test programs",
    DPU_CLIENT: "a DPU (--dpu-server, --dpu-client)",
    FAILURE: "--fail-device COMMAND, because it resets the card",
}


@dataclasses.dataclass
class Run:
    """One run of the tool on both hosts."""

    claims: str
    name: str
    arguments: tuple
    tls: str = RC
    zero_copy: tuple = ()         # the sides whose CPU may not copy a byte
    variables: tuple = ()
    server_variables: tuple = ()  # of the server only
    versus: str = ""              # the name of the run whose time this one is compared with
    needs: str = ""               # capability without which it cannot work
    quick: bool = False

    @property
    def about(self):
        return About(self.claims)


# Without the hook "offer" atomic operations fail if the card does not do them.
BY_THE_CARD = (("UCX_LAYOUT_HOOKS", "put,get,atomic,reply"),)
EAGER = (("UCX_RNDV_THRESH", "inf"), ("UCX_ZCOPY_THRESH", "0"))
KEYS_OFF = (("UCX_LAYOUT_KEYS_ENABLE", "n"),)
SHOW_PROTOCOLS = (("UCX_PROTO_INFO", "y"),)
RELAXED_ON = (("UCX_IB_PCI_RELAXED_ORDERING", "on"),)
RELAXED_OFF = (("UCX_IB_PCI_RELAXED_ORDERING", "off"),)

# Names that other modules look for.
PLAIN_PUT, ROWS_PUT = "put, plain memory", "put, blocks of 1 KB"
BY_CARD, BY_HOST = "put on one host, by the card", "put on one host, not by the card"
PROTOCOLS, PROTOCOLS_OFF = "tag, plain memory", "tag, plain memory, keys off"
ADD_IN_HOST, ADD_IN_CARD = "fetch-add in host memory", "fetch-add in memory of the card"
ADD_RELAXED, PUT_RELAXED = "fetch-add, relaxed ordering on", "put, relaxed ordering on"
AGAINST_8, AGAINST_64, AGAINST_1K = (f"blocks of {size}, against packing" for size in ("8 bytes", "64 bytes", "1 KB"))

RUNS = (
    Run("1 2", "put, strided", ("ucp_put_bw", "-l", STRIDED), zero_copy=BOTH, quick=True),
    Run("1 2", "get, strided", ("ucp_get", "-l", STRIDED), zero_copy=BOTH, quick=True),
    Run("2", "put, list", ("ucp_put_bw", "-l", LIST), zero_copy=BOTH),
    Run("2 ~17", "put, interleaved", ("ucp_put_bw", "-l", VERTICES, "-s", "1024000"), zero_copy=BOTH, quick=True),
    Run("2", "put, nested", ("ucp_put_bw", "-l", FACE), zero_copy=BOTH),
    Run("2", "put, unlike layouts", ("ucp_put_bw", "-l", STRIDED + "," + ROWS),
        zero_copy=BOTH, quick=True),
    Run("~4", "tag, rendezvous", ("tag_bw", "-l", STRIDED), zero_copy=BOTH, quick=True),
    Run("~4", "active message, rendezvous", ("am_bw", "-l", STRIDED), zero_copy=BOTH),
    Run("9", "tag, eager, copied", ("tag_bw", "-l", "strided(64,64,128)"), quick=True),
    Run("9", "stream, copied by the receiver", ("stream_bw", "-l", STRIDED), zero_copy=(CLIENT,)),
    Run("9", "put, keys off", ("ucp_put_bw", "-l", STRIDED), variables=KEYS_OFF),
    Run("9", "put, keys off at the server", ("ucp_put_bw", "-l", STRIDED), server_variables=KEYS_OFF),
    Run("41", "tag, eager, gathered by rc", ("tag_bw", "-l", "strided(32,64,128)"), variables=EAGER,
        zero_copy=(CLIENT,)),
    Run("41", "tag, eager, gathered by dc", ("tag_bw", "-l", "strided(32,64,128)"), DC, variables=EAGER,
        zero_copy=(CLIENT,)),
    Run("41", "tag, eager, gathered by ud", ("tag_bw", "-l", "strided(32,64,128)"), UD, variables=EAGER,
        zero_copy=(CLIENT,)),
    Run("", PLAIN_PUT, ("ucp_put_bw", *PLAIN, "1M")),
    Run("~41", ROWS_PUT, ("ucp_put_bw", "-l", ROWS), zero_copy=BOTH, versus=PLAIN_PUT),
    Run("~4", PROTOCOLS_OFF, ("tag_bw", *PLAIN, "1M"), variables=KEYS_OFF + SHOW_PROTOCOLS),
    Run("~4", PROTOCOLS, ("tag_bw", *PLAIN, "1M"), variables=SHOW_PROTOCOLS, versus=PROTOCOLS_OFF),
    Run("1", "put over dc", ("ucp_put_bw", "-l", STRIDED), DC, zero_copy=BOTH, quick=True),
    Run("1", "put over rc_verbs", ("ucp_put_bw", "-l", STRIDED), RC_VERBS, zero_copy=BOTH),
    Run("~24 38", "fetch-add, words in a window", ("ucp_fadd", "-l", WORDS), variables=BY_THE_CARD, needs=ATOMICS,
        quick=True),
    Run("~24 38", "add, words in a window", ("ucp_add", "-l", WORDS), variables=BY_THE_CARD, needs=ATOMICS),
    Run("~24 38", "swap, words in a window", ("ucp_swap", "-l", WORDS), variables=BY_THE_CARD, needs=ATOMICS),
    Run("~24 38", "compare-swap, words in a window", ("ucp_cswap", "-l", WORDS), variables=BY_THE_CARD, needs=ATOMICS),
    Run("~24 38", "fetch-add over dc", ("ucp_fadd", "-l", WORDS), DC, variables=BY_THE_CARD, needs=ATOMICS),
    Run("~42", "fetch-add, relaxed ordering off", ("ucp_fadd", "-l", WORDS), variables=BY_THE_CARD + RELAXED_OFF,
        needs=ATOMICS),
    Run("~42", ADD_RELAXED, ("ucp_fadd", "-l", WORDS), variables=BY_THE_CARD + RELAXED_ON, needs=ATOMICS),
    Run("~42", PUT_RELAXED, ("ucp_put_bw", "-l", STRIDED), variables=RELAXED_ON, zero_copy=BOTH),
    Run("~5", ADD_IN_HOST, ("ucp_fadd", *PLAIN, "8"), quick=True),
    Run("~5 39", ADD_IN_CARD, ("ucp_fadd", *PLAIN, "8", "-m", "host,rdma"), versus=ADD_IN_HOST, quick=True),
    Run("39", "put into memory of the card", ("ucp_put_bw", *PLAIN, "4K", "-m", "host,rdma")),
    Run("~8 ~27", AGAINST_8, ("ucp_put_bw", "--method", "pack,window", "-l", "strided(131072,8,16)")),
    Run("~8 ~27", AGAINST_64, ("ucp_put_bw", "--method", "pack,window", "-l", STRIDED)),
    Run("~8 ~27", AGAINST_1K, ("ucp_put_bw", "--method", "pack,window", "-l", ROWS)),
)

# The client is on the DPU. On the host there are two servers: one has the memory, the other is the peer.
AS_DPU = (("UCX_ZCOPY_THRESH", "0"), ("UCX_RC_MLX5_TX_INLINE_RESP", "0"))
DPU_RUNS = (
    Run("7 44 ~47", "map, export, import, unmap a buffer", ("xgvmi_map", *PLAIN, "1M"), quick=True),
    Run("7 44 ~47", "the same with a window", ("xgvmi_map", "-l", STRIDED), quick=True),
    Run("44", "get into a buffer of the host", ("xgvmi_get", *PLAIN, "16K,1M"), variables=AS_DPU, quick=True),
    Run("44", "put from a buffer of the host", ("xgvmi_put", *PLAIN, "16K,1M"), variables=AS_DPU),
    Run("44", "get into a window of the host", ("xgvmi_get", "-l", ROWS), variables=AS_DPU, zero_copy=(DPU_SERVER,),
        quick=True),
    Run("44", "put from a window of the host", ("xgvmi_put", "-l", STRIDED), variables=AS_DPU,
        zero_copy=(DPU_SERVER,)),
    Run("46", "put from a window of nested keys", ("xgvmi_put", "-l", LIST), variables=AS_DPU,
        zero_copy=(DPU_SERVER,), quick=True),
    Run("44", "get over dc", ("xgvmi_get", "-l", STRIDED), DC, variables=AS_DPU, zero_copy=(DPU_SERVER,)),
)
