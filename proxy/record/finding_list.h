// All kinds of findings: id, name, severity, meaning and causes. TW_FINDING must be defined where
// this file is included.

TW_FINDING(packet_too_short, "packet.too_short", warning, "A datagram is shorter than its header.",
           "Scanners, other programs on the port, or a damaged sender.")
TW_FINDING(packet_too_long, "packet.too_long", warning,
           "A datagram is longer than the 1400 bytes that game programs take.",
           "A mod that packs more than a packet may hold; in a capture also datagrams that the "
           "recording host merged (record with: ethtool -K IFACE gro off).")
TW_FINDING(packet_huffman_truncated, "packet.huffman_truncated", error,
           "Compressed data ends before its end symbol; the receiver drops the packet.",
           "A damaged packet or a broken compressor.")
TW_FINDING(packet_huffman_overflow, "packet.huffman_overflow", error,
           "A packet decompresses to more than a payload may hold; the receiver drops it.",
           "A decompression bomb or a broken compressor.")
TW_FINDING(packet_control_empty, "packet.control_empty", warning,
           "A control packet does not say its kind.", "A damaged or hand-made packet.")
TW_FINDING(packet_control_compressed, "packet.control_compressed", info,
           "A control packet is compressed; DDNet refuses it, vanilla accepts it.",
           "A very old vanilla peer or a hand-made packet.")
TW_FINDING(packet_control_unknown, "packet.control_unknown", info,
           "A control packet of unknown kind; receivers ignore it.",
           "A mod's own extension or a damaged packet.")
TW_FINDING(packet_wrong_token, "packet.wrong_token", info,
           "A packet's token is not its connection's; the receiver drops it.",
           "A leftover of an older connection, a restarted server, or a forged packet.")
TW_FINDING(packet_trailing_bytes, "packet.trailing_bytes", info,
           "Bytes after the last chunk are not a token; receivers ignore them.",
           "A client library that always appends a token.")
TW_FINDING(packet_seven, "packet.seven", info,
           "A Teeworlds 0.7 packet arrived on a 0.6 connection, to which it does not belong.",
           "A client that queries servers of both versions from one socket, or a forged packet.")
TW_FINDING(chunk_unseen_ack, "chunk.unseen_ack", warning,
           "The receiver acknowledged a reliable message that no accepted packet contained.",
           "A peer that acknowledges what it did not receive, or one that accepts a packet that "
           "twscope counts as discarded.")
TW_FINDING(chunk_truncated, "chunk.truncated", warning,
           "A packet ends inside a chunk; the chunks before it count, the rest is lost.",
           "A damaged packet or a sender that miscounts.")
TW_FINDING(chunk_empty, "chunk.empty", info, "A chunk without a message; receivers ignore it.",
           "The damaged anti-spoof packet of DDNet 14.0 to 16.7.")
TW_FINDING(chunk_vital_gap, "chunk.vital_gap", info,
           "A reliable chunk was seen before a missing one; a receiver that misses that one, too, "
           "drops it until both are sent again.",
           "Packet loss or reordering; in a capture also a datagram that was not recorded.")
TW_FINDING(message_id_invalid, "message.id_invalid", warning,
           "A message has no valid id; receivers ignore it.",
           "A damaged packet or a broken packer.")
TW_FINDING(message_unknown, "message.unknown", info,
           "A message with an id or UUID that twscope does not know; it is kept raw.",
           "A mod's own message, or a client newer than this program.")
TW_FINDING(message_truncated, "message.truncated", warning,
           "A message ends inside a field; receivers ignore all of it.",
           "A sender that packs fewer fields than the protocol has.")
TW_FINDING(message_trailing_bytes, "message.trailing_bytes", info,
           "Bytes are left over after the last field; receivers ignore them.",
           "A newer peer that added fields.")
TW_FINDING(message_out_of_range, "message.out_of_range", info,
           "A value is outside what the reference reader accepts; it drops the message.",
           "A mod that uses a field for something else, or a server with more slots than the "
           "client.")
TW_FINDING(snapshot_crc_mismatch, "snapshot.crc_mismatch", error,
           "The rebuilt snapshot's checksum differs from the server's; clients drop such a "
           "snapshot.",
           "A value changed: in transit, or because the server wrote to an item after the snapshot "
           "was built. After snapshot.duplicate_update of the same tick: two items with the same "
           "type and id.")
TW_FINDING(
    snapshot_unknown_base, "snapshot.unknown_base", warning,
    "A delta is based on a snapshot that was not seen, or was rejected; it cannot be rebuilt.",
    "The recording began in the middle of a session, snapshots were lost before they reached "
    "twscope, or the base has a finding of its own.")
TW_FINDING(snapshot_body_truncated, "snapshot.body_truncated", error,
           "A delta ends inside an integer; clients drop it.",
           "A damaged packet or parts of different snapshots.")
TW_FINDING(snapshot_too_many_ints, "snapshot.too_many_ints", error,
           "A delta holds more integers than a client decodes; clients drop the snapshot.",
           "Far too many changed items at once.")
TW_FINDING(snapshot_negative_count, "snapshot.negative_count", error,
           "A delta announces a negative number of deletions; clients drop it.", "A damaged delta.")
TW_FINDING(snapshot_deleted_out_of_range, "snapshot.deleted_out_of_range", error,
           "A delta announces more deletions than it holds; clients drop it.", "A damaged delta.")
TW_FINDING(snapshot_update_truncated, "snapshot.update_truncated", error,
           "A delta ends before the last announced update; clients drop it.",
           "A damaged delta, or a type whose size the server and the client disagree on.")
TW_FINDING(snapshot_type_out_of_range, "snapshot.type_out_of_range", error,
           "An update names an item type outside 0..32767; clients drop the snapshot.",
           "A type whose size the server and the client disagree on, or a damaged delta.")
TW_FINDING(snapshot_id_out_of_range, "snapshot.id_out_of_range", error,
           "An update names an item id outside 0..65535; clients drop the snapshot.",
           "A type whose size the server and the client disagree on, or a damaged delta.")
TW_FINDING(snapshot_size_out_of_range, "snapshot.size_out_of_range", error,
           "An update claims a size that is negative or more than the delta holds.",
           "A type whose size the server and the client disagree on, or a damaged delta.")
TW_FINDING(snapshot_size_change, "snapshot.size_change", error,
           "An update's size differs from that of the item it changes; current clients drop the "
           "snapshot.",
           "A mod that sends one item id with two sizes.")
TW_FINDING(snapshot_too_many_items, "snapshot.too_many_items", error,
           "The snapshot would hold more than 1024 items; clients drop it.",
           "A server that sends more than clients accept.")
TW_FINDING(snapshot_too_many_bytes, "snapshot.too_many_bytes", error,
           "The snapshot would be larger than 64 KiB; clients drop it.",
           "A server that sends more than clients accept.")
TW_FINDING(snapshot_duplicate_update, "snapshot.duplicate_update", warning,
           "A delta updates one item twice; the later update wins and the checksum will not match.",
           "The server put two items with the same key into a snapshot.")
TW_FINDING(snapshot_unknown_delete, "snapshot.unknown_delete", warning,
           "A delta deletes an item that its base does not contain; clients ignore it.",
           "A server whose stored base differs from what it sent.")
TW_FINDING(snapshot_duplicate_delete, "snapshot.duplicate_delete", warning,
           "A delta deletes one item twice; clients ignore the second.",
           "The server's base held two items with the same key.")
TW_FINDING(snapshot_deleted_and_updated, "snapshot.deleted_and_updated", warning,
           "A delta deletes and updates the same item; the update still applies to the base's "
           "item.",
           "The server's base held two items with the same key.")
TW_FINDING(snapshot_surplus_ints, "snapshot.surplus_ints", info,
           "Integers are left over after the last update of a delta; clients ignore them.",
           "A server that counts wrong when it writes deltas.")
TW_FINDING(snapshot_negative_base, "snapshot.negative_base", info,
           "A delta names a negative base other than -1; clients treat it as none.",
           "A hand-made server.")
TW_FINDING(snapshot_item_cap, "snapshot.item_cap", warning,
           "A snapshot has reached 90 % of a limit; beyond it servers silently drop items.",
           "Too many entities in sight: pickups, lasers, projectiles of a large map or a mod.")
TW_FINDING(snapshot_part_missing, "snapshot.part_missing", info,
           "Not all parts of a snapshot were seen; a client that misses one, too, never shows it.",
           "Packet loss; in a capture also a datagram that was not recorded.")
TW_FINDING(snapshot_part_out_of_range, "snapshot.part_out_of_range", error,
           "A snapshot message has invalid numbers (ticks, parts or size); clients ignore it.",
           "A damaged packet or a hand-made server.")
TW_FINDING(snapshot_part_inconsistent, "snapshot.part_inconsistent", warning,
           "Parts of one tick contradict each other.", "Two snapshots under one tick, or damage.")
TW_FINDING(snapshot_missing_descriptor, "snapshot.missing_descriptor", info,
           "An item's type is not described in its snapshot; clients skip the item.",
           "DDNet before 18.3 forgets it in the first snapshot that uses a type.")
TW_FINDING(map_not_found, "map.not_found", info,
           "The map is in none of the folders; positions are not resolved against it.",
           "No --maps folder was given, or the map is not in it.")
TW_FINDING(map_crc_mismatch, "map.crc_mismatch", warning,
           "A map of this name was found, but in another version; it is not used.",
           "The server's map was changed, or DDNet serves it with imported settings.")
TW_FINDING(map_unreadable, "map.unreadable", warning,
           "The map's file was found but could not be read.", "A damaged file or a newer format.")
TW_FINDING(map_name_invalid, "map.name_invalid", warning,
           "The announced map name is not one that a client would use as a file name.",
           "A hostile server, or control characters in the name.")
TW_FINDING(map_not_cached, "map.not_cached", warning,
           "The map that a client downloaded is used, but could not be stored in --map-cache.",
           "The disk is full, the folder cannot be written, or it holds as much as it may.")
TW_FINDING(
    world_inside_solid, "world.inside_solid", warning, "A character stands inside a wall.",
    "Mostly a mod that moves tees, or another map than announced; rarely, an unmodified DDNet "
    "server does it, too.")
TW_FINDING(world_outside_map, "world.outside_map", warning,
           "A character is further outside the map than the game allows.",
           "A mod that moves tees, or another map than announced.")
TW_FINDING(session_joined_midway, "session.joined_midway", info,
           "The session was already running when it was first seen.",
           "A recording that began later than the session.")
TW_FINDING(session_reconnected, "session.reconnected", info,
           "A new connection began on the addresses of an older one.",
           "The client restarted or reconnected from the same port.")
TW_FINDING(session_closed_silently, "session.closed_silently", info,
           "The session ended without a close packet.",
           "A timeout, a crash or a lost close packet.")
TW_FINDING(session_antispoof, "session.antispoof", info,
           "The server sent its anti-spoof prelude before the real map.",
           "A client without token support: the server verifies its address first.")
TW_FINDING(inspect_gap, "inspect.gap", warning,
           "Some traffic was not analysed. Players are unaffected.",
           "ring_full: more traffic than this machine can decode; forwarding takes priority, and "
           "the newest sessions are no longer analysed. new_observer: a new observer joined the "
           "running session. memory: all sessions together needed more than --memory "
           "allows. kernel_dropped: a tap's kernel buffer was full (tap --buffer). truncated: the "
           "capture's recorder kept only the beginning of a datagram (record with a snap length of "
           "0). missed_chunks: the receiver acknowledged a reliable message that was never seen "
           "here, as in captures that miss packets.")
TW_FINDING(snapshot_tick_jump, "snapshot.tick_jump", warning,
           "A snapshot's tick jumps by more than the elapsed time explains; clients that accept a "
           "future one drop all that follow it.",
           "A forged packet, or a server that restarted unnoticed.")
TW_FINDING(packet_not_accepted, "packet.not_accepted", info, "The receiver discards this packet.",
           "A packet that arrived late or twice, or one forged to be seen but not accepted.")
TW_FINDING(message_unexpected, "message.unexpected", info,
           "This message never comes from this side; receivers ignore it.",
           "A client library with a wrong id, or a client that imitates another message.")
TW_FINDING(snapshot_leftover, "snapshot.leftover", info,
           "A snapshot of the previous map arrived after the map change; clients drop it.",
           "Datagrams in flight when the map changed.")
TW_FINDING(session_server_silent, "session.server_silent", warning,
           "The server answers no client (began), or answers again (ended).",
           "The server is down, restarting or frozen, or nothing listens at its address.")
TW_FINDING(snapshot_size_differs, "snapshot.size_differs", error,
           "The server sends a type with another number of ints than clients expect; they drop "
           "every snapshot that contains it.",
           "A mod that added ints to an object of 0.6 or removed some. An object with a UUID may "
           "have any size.")
TW_FINDING(snapshot_explained, "snapshot.explained", info,
           "The next verified snapshots show which values can have made the checksum of a rejected "
           "one wrong.",
           "Damage in transit, or a server that changes an item while it writes the snapshot.")
TW_FINDING(snapshot_client_stalled, "snapshot.client_stalled", warning,
           "A client got nothing new to show for a while; its game froze.",
           "Snapshots that it had to reject, packet loss, a server that stopped, or a client that "
           "did; the name says which.")
TW_FINDING(snapshot_budget, "snapshot.budget", warning,
           "Snapshots grow towards a limit, beyond which servers silently drop items.",
           "A type whose items are created faster than they are removed.")
TW_FINDING(demo_damaged, "demo.damaged", error,
           "A demo cannot be read beyond this point; demo players stop here too.",
           "A damaged disk or copy, or a recorder that was given one tick twice.")
TW_FINDING(demo_cut_short, "demo.cut_short", warning,
           "A demo ends inside a chunk; everything before it was read.",
           "Its recorder was killed, or is still writing it.")
TW_FINDING(demo_snapshot_invalid, "demo.snapshot_invalid", error,
           "A full snapshot of a demo has inconsistent counts or offsets; demo players skip it.",
           "A damaged demo or a broken recorder.")
TW_FINDING(demo_duplicate_item, "demo.duplicate_item", warning,
           "A full snapshot of a demo has several items with the same key; demo players see the "
           "first of them.",
           "The server sent the same item twice.")
TW_FINDING(session_resync, "session.resync", info,
           "The acknowledged tick of an input was rewritten to -1 on its way to the server, which "
           "answers with a full snapshot.",
           "--resync: the session's snapshots could not be verified, because the observer joined "
           "it midway or was too slow.")
TW_FINDING(world_views_differ, "world.views_differ", warning,
           "Two clients received, in one tick, different values of what is the same for everyone.",
           "A bug in the server or a mod, or two servers behind one address.")
TW_FINDING(world_vanished, "world.vanished", warning,
           "A player listed as playing vanished from someone's view without dying.",
           "A bug in the server or a mod, which does not send the tee.")
TW_FINDING(world_late, "world.late", info,
           "Snapshots arrived too late to be part of their tick's world.",
           "A network with long delays, or more sessions than can be merged in time.")
TW_FINDING(demo_tick_order, "demo.tick_order", warning,
           "A demo goes back to an earlier tick or repeats one; players show what follows at once.",
           "A recorder that continued across a map change or a server restart, or demos that were "
           "joined.")
TW_FINDING(world_stray, "world.stray", info,
           "Snapshots had ticks unlike those of the server's other sessions, and are in no world.",
           "Two servers behind one address, a mod that runs several games at once, forged "
           "datagrams, or a clock that stepped.")
TW_FINDING(world_per_viewer, "world.per_viewer", info,
           "The server sends each client its own value of this field, and clients never agreed on "
           "it.",
           "A mod that shows each player something else, such as random dots or a timer of its "
           "own; if players differ in all they are, two servers behind one address.")
TW_FINDING(snapshot_unknown_type, "snapshot.unknown_type", info,
           "Items have a number that is no type of the protocol; clients that do not know it skip "
           "them.",
           "A mod's own object (--objects describes it), or an object sent to clients of another "
           "version.")
TW_FINDING(message_version_unknown, "message.version_unknown", info,
           "What the message's number means depends on the server's version, which is not known; "
           "it is read as the name says.",
           "A server of DDNet before 13.2.1 that has not said its version, or a mod that uses the "
           "number.")
TW_FINDING(packet_undecided, "packet.undecided", info,
           "Whether the receiver took this packet cannot be told from what was recorded; it is not "
           "read. The name says what is missing.",
           "not_established: too little of the session was recorded to know its protocol. "
           "ack_window: the packet acknowledges a reliable message that was not recorded, or it is "
           "late or forged. wrong_token: the side that chose the token was not recorded.")
TW_FINDING(session_one_direction, "session.one_direction", info,
           "Only one side of this conversation was seen; the name is the direction that is "
           "missing.",
           "A capture filter, a mirror port or a route that shows one direction; or nobody "
           "answered.")
TW_FINDING(session_messages_left_out, "session.messages_left_out", warning,
           "The session sends more messages than one session may record; the others are counted.",
           "A client that floods the server with messages; --message-limit sets how many are "
           "recorded.")
TW_FINDING(session_unanswered, "session.unanswered", warning,
           "The server no longer answers this client, while it answers others (began), or answers "
           "it again (ended).",
           "The server has dropped the client, which was not told or does not know; or datagrams "
           "are lost in one direction.")
