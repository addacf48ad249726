// Ints and strings in the encoding of messages (section 3 of the protocol).

/** Encodes an int as one to five bytes. */
export function int(value) {
    const sign = value < 0 ? 0x40 : 0;
    let rest = (sign ? ~value : value) >>> 0;
    const bytes = [sign | (rest & 0x3f)];
    for (rest >>>= 6; rest; rest >>>= 7) {
        bytes[bytes.length - 1] |= 0x80;
        bytes.push(rest & 0x7f);
    }
    return Buffer.from(bytes);
}

export const string = (text) => Buffer.from(`${text}\0`);

/** Reads ints one after the other. */
export function* ints(bytes) {
    for (let at = 0; at < bytes.length;) {
        let byte = bytes[at++];
        const sign = byte & 0x40;
        let value = byte & 0x3f;
        for (let shift = 6; byte & 0x80 && shift < 32; shift += 7) {
            byte = bytes[at++];
            value |= (byte & 0x7f) << shift;
        }
        yield sign ? ~value : value;
    }
}
