// Finds colours on a screenshot of the game. Reads PNG with 8 bits a channel, RGB or RGBA, not interlaced.
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

const paeth = (left, up, corner) => {
    const guess = left + up - corner;
    const [toLeft, toUp, toCorner] = [left, up, corner].map((each) => Math.abs(guess - each));
    if (toLeft <= toUp && toLeft <= toCorner) return left;
    return toUp <= toCorner ? up : corner;
};
const FILTERS = [() => 0, (left) => left, (left, up) => up, (left, up) => (left + up) >> 1, paeth];

/** Reads a picture; returns { width, height, at(x, y) -> [red, green, blue] }. */
export function readPicture(file) {
    const bytes = readFileSync(file);
    const packed = [];
    let [width, height, channels] = [0, 0, 0];
    for (let at = 8; at < bytes.length;) {
        const size = bytes.readUInt32BE(at);
        const kind = bytes.toString('latin1', at + 4, at + 8);
        const data = bytes.subarray(at + 8, at + 8 + size);
        if (kind === 'IHDR') {
            [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
            channels = { 2: 3, 6: 4 }[data[9]];
            if (data[8] !== 8 || !channels || data[12] !== 0) throw new Error(`${file}: another kind of PNG`);
        } else if (kind === 'IDAT') {
            packed.push(data);
        }
        at += 12 + size;
    }
    const rows = inflateSync(Buffer.concat(packed));
    const stride = width * channels;
    const pixels = Buffer.alloc(height * stride);
    for (let y = 0; y < height; y += 1) {
        const filter = FILTERS[rows[y * (stride + 1)]];
        for (let x = 0; x < stride; x += 1) {
            const here = y * stride + x;
            const left = x >= channels ? pixels[here - channels] : 0;
            const up = y > 0 ? pixels[here - stride] : 0;
            const corner = x >= channels && y > 0 ? pixels[here - stride - channels] : 0;
            pixels[here] = rows[y * (stride + 1) + 1 + x] + filter(left, up, corner);
        }
    }
    return { width, height, at: (x, y) => [...pixels.subarray(y * stride + x * channels, y * stride + x * channels + 3)] };
}

/** Returns the centre of all pixels of a kind, without the outermost tenths, and their number. */
export function middleOf(picture, wanted) {
    const found = [];
    for (let y = 0; y < picture.height; y += 1) {
        for (let x = 0; x < picture.width; x += 1) if (wanted(picture.at(x, y))) found.push([x, y]);
    }
    const middle = (axis) => {
        const inner = found.map((place) => place[axis]).sort((a, b) => a - b)
            .slice(Math.floor(found.length / 10), Math.ceil(found.length * 0.9));
        return (inner[0] + inner.at(-1)) / 2;
    };
    return { x: middle(0), y: middle(1), count: found.length };
}
