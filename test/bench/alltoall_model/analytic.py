"""The exchange in closed form: for each resource how long it works, and the longest of them. Takes no time, whatever
the number of nodes. It looks at one node, as all are alike, and at its busiest service.

    time_ns(Exchange(nodes=1000), Cost(...), table.scalars)
"""
from exchange import message_time_ns


def time_ns(exchange, cost, scalars):
    parts = parts_of(exchange, cost, scalars)
    busiest = max(parts[name] for name in ("link", "service", "host", "commands"))
    # Who is busy all the time ends with one more transfer; the last step of a window is one.
    return parts["setup"] + max(busiest + parts["drain"], parts["window"]) + parts["tail"]


def parts_of(exchange, cost, scalars):
    """The times that make it up, ns."""
    return (of_messages if exchange.buffers == "message" else of_call)(exchange, cost, scalars)


def lanes_of(scalars):
    return scalars["card_commands"] or float("inf")


def map_of(cost, scalars):
    return scalars["lookup"] + cost.host_map_ns + scalars["host_message"]


def transfer_of(exchange, scalars):
    """From the announcement of a message to the end of the send, without waiting."""
    return (2 * scalars["message_latency"] + 4 * scalars["service_message"] + scalars["service_get"] +
            scalars["read_latency"] + message_time_ns(scalars, exchange.message_bytes))


def of_call(exchange, cost, scalars):
    lanes, latency, message = lanes_of(scalars), scalars["message_latency"], scalars["service_message"]
    buffers = 2 * exchange.served
    one_map = max(map_of(cost, scalars), exchange.processes * cost.host_map_commands / lanes)
    one_import = message + scalars["lookup"] + cost.dpu_import
    all_imports = max(buffers * one_import, 2 * exchange.processes * cost.dpu_import / lanes)
    setup = latency + max(one_map + all_imports, 2 * one_map + one_import)
    release = max(buffers * (message + cost.dpu_release), 2 * exchange.processes * cost.dpu_release / lanes)
    unmap = max(2 * (scalars["host_message"] + cost.host_unmap_ns),
                2 * exchange.processes * cost.host_unmap_commands / lanes) + latency
    transfer = transfer_of(exchange, scalars)
    work = exchange.served * exchange.ranks * (4 * message + scalars["service_get"])
    link = exchange.processes * exchange.ranks * message_time_ns(scalars, exchange.message_bytes)
    return {"setup": setup, "link": link, "service": work, "host": 0.0, "commands": 0.0,
            "window": -(-exchange.ranks // exchange.in_flight) * transfer, "drain": transfer,
            "tail": max(release, unmap)}


def of_messages(exchange, cost, scalars):
    lanes, latency, message = lanes_of(scalars), scalars["message_latency"], scalars["service_message"]
    one_map = map_of(cost, scalars)
    one_unmap = scalars["host_message"] + cost.host_unmap_ns
    one_import = message + scalars["lookup"] + cost.dpu_import
    one_release = message + cost.dpu_release
    commands = cost.host_map_commands + cost.host_unmap_commands + cost.dpu_import + cost.dpu_release
    transfer = transfer_of(exchange, scalars)
    link = exchange.processes * exchange.ranks * message_time_ns(scalars, exchange.message_bytes)
    messages = exchange.served * exchange.ranks
    # Host, service and transfer of one step. The host maps the send buffer first; the release is not waited for.
    step = 2 * one_map + one_unmap + 2 * latency + one_import + message + transfer
    return {"setup": one_map + latency + one_import, "link": link,
            "service": messages * (4 * message + scalars["service_get"] + 2 * (one_import + one_release)),
            "host": exchange.ranks * 2 * (one_map + one_unmap),
            "commands": exchange.processes * exchange.ranks * 2 * commands / lanes,
            "window": -(-exchange.ranks // exchange.in_flight) * step, "drain": transfer,
            "tail": one_release + one_unmap}
