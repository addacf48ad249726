// Reads packets and chunks as clients do, and the numbers in them.
import { createRequire } from 'node:module';

const { Huffman } = createRequire(import.meta.url)('teeworlds/lib/huffman.js');

const huffman = new Huffman();
export const FLAG = { ackHigh: 0x03, seven: 0x04, header: 0x08, control: 0x10, connless: 0x20, resend: 0x40, compressed: 0x80 };
export const KIND = { keepalive: 0, connect: 1, connectAccept: 2, accept: 3, close: 4 };
export const SYSTEM = { info: 1, mapChange: 2, conReady: 4, snap: 5, snapEmpty: 6, snapSingle: 7, ready: 14, enterGame: 15, input: 16 };
export const GAME = { chat: 3, readyToEnter: 8, say: 17, startInfo: 20 };
export const VERSION = '0.6 626fce9a778df4d4';
export const SEQUENCES = 1024;

/** Compresses a payload as senders do. */
export const compress = (bytes) => huffman.compress(bytes);

/** Returns a chunk with a message; it is vital if it has a sequence. `size`: a wrong size for its header. */
export function chunk(body, { sequence, resend = false, size = body.length } = {}) {
    const vital = sequence !== undefined;
    const head = [(resend ? 0x80 : 0) | (vital ? 0x40 : 0) | (size >> 4), (vital ? (sequence >> 2) & 0xf0 : 0) | (size & 15)];
    return Buffer.concat([Buffer.from(vital ? [...head, sequence & 0xff] : head), body]);
}

/** Returns the vital messages that a datagram does not acknowledge. */
export function stillUnacknowledged(messages, datagram) {
    const acknowledged = ((datagram[0] & FLAG.ackHigh) << 8) | datagram[1];
    return messages.filter(({ sequence }) =>
        (sequence - acknowledged + SEQUENCES) % SEQUENCES < SEQUENCES / 2 && sequence !== acknowledged);
}

/** Returns the first chunk, and the bytes after it; it has a `sequence` only if it is vital. */
function splitChunk(bytes) {
    const size = ((bytes[0] & 0x3f) << 4) | (bytes[1] & 15);
    const vital = bytes[0] & 0x40;
    const head = vital ? 3 : 2;
    const sequence = vital ? ((bytes[1] & 0xf0) << 2) | bytes[2] : undefined;
    return { body: bytes.subarray(head, head + size), behind: bytes.subarray(head + size), sequence };
}

/** Returns the bytes after a datagram's header, decompressed. */
export const payloadOf = (datagram) => (datagram[0] & FLAG.compressed ? Buffer.from(huffman.decompress(datagram.subarray(3)))
    : datagram.subarray(3));

/** Returns the chunks of a datagram as { bytes, body, sequence }. `tokenSize`: bytes of the token after the chunks. */
export function* chunksOf(datagram, tokenSize = 0) {
    const payload = payloadOf(datagram);
    let rest = payload.subarray(0, payload.length - tokenSize);
    for (let left = datagram[2]; left > 0 && rest.length > 1; left -= 1) {
        const { body, behind, sequence } = splitChunk(rest);
        yield { bytes: rest.subarray(0, rest.length - behind.length), body, sequence };
        rest = behind;
    }
}

/**
 * Returns the messages of a datagram that its receiver accepts, as [id, is it a system message, fields]. Advances `client.ack` for each
 * vital one. `tokenSize`: bytes of the token after the chunks.
 */
export function* messagesOf(datagram, client, tokenSize = 0) {
    for (const { body, sequence } of chunksOf(datagram, tokenSize)) {
        if (sequence !== undefined) {
            if (sequence !== (client.ack + 1) % SEQUENCES) continue;
            client.ack = sequence;
        }
        if (body.length) yield [body[0] >> 1, body[0] & 1, body.subarray(1)];
    }
}
