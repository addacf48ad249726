// Reads the physics layers of a map. Independent of twscope's own reader, to compare the results; expects well-formed maps.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

const HEADER_BYTES = 36;
const LAYER_TYPE = 5;
const TILES_LAYER = 2;
const NAMED_VERSION = 3; // from this version of a tile layer on, three ints of name precede DDNet's data indices
const TILE = 32;

// Flag of the layer; bytes of a tile; offset of the id in a tile; which of DDNet's data indices is the layer's own.
const KINDS = {
    game: { flag: 1, bytes: 4, id: 0 },
    tele: { flag: 2, bytes: 2, id: 1, index: 0 },
    speedup: { flag: 4, bytes: 6, id: 2, index: 1 },
    front: { flag: 8, bytes: 4, id: 0, index: 2 },
    switch: { flag: 16, bytes: 4, id: 1, index: 3 },
    tune: { flag: 32, bytes: 2, id: 1, index: 4 },
};

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    return value;
});

export function crc32(bytes) {
    let crc = -1;
    for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
    return (crc ^ -1) >>> 0;
}

class Datafile {
    constructor(bytes) {
        const int = (offset) => bytes.readInt32LE(offset);
        this.bytes = bytes;
        this.version = int(4);
        const [types, items, blocks, itemBytes] = [16, 20, 24, 28].map(int);
        this.types = HEADER_BYTES;
        this.typeCount = types;
        this.itemOffsets = this.types + types * 12;
        this.dataOffsets = this.itemOffsets + items * 4;
        this.items = this.dataOffsets + blocks * (this.version === 4 ? 8 : 4);
        this.data = this.items + itemBytes;
        this.blocks = blocks;
    }

    /** Iterates over the ints of every item of a type. */
    * itemsOf(type) {
        for (let entry = 0; entry < this.typeCount; entry++) {
            const [id, start, count] = [0, 4, 8].map((offset) => this.bytes.readInt32LE(this.types + entry * 12 + offset));
            for (let item = start; id === type && item < start + count; item++) {
                const at = this.items + this.bytes.readInt32LE(this.itemOffsets + item * 4);
                const ints = this.bytes.readInt32LE(at + 4) / 4;
                yield Array.from({ length: ints }, (_, index) => this.bytes.readInt32LE(at + 8 + index * 4));
            }
        }
    }

    block(index) {
        const start = this.data + this.bytes.readInt32LE(this.dataOffsets + index * 4);
        const end = index + 1 < this.blocks ? this.data + this.bytes.readInt32LE(this.dataOffsets + (index + 1) * 4)
            : this.bytes.length;
        const raw = this.bytes.subarray(start, end);
        return this.version === 4 ? inflateSync(raw) : raw;
    }
}

export class GameMap {
    constructor(file) {
        const bytes = readFileSync(file);
        this.size = bytes.length;
        this.crc = crc32(bytes).toString(16).padStart(8, '0');
        this.sha256 = createHash('sha256').update(bytes).digest('hex');
        this.layers = {};
        const datafile = new Datafile(bytes);
        for (const layer of datafile.itemsOf(LAYER_TYPE)) {
            if (layer[1] !== TILES_LAYER) continue;
            const kind = Object.keys(KINDS).find((name) => layer[6] === KINDS[name].flag);
            if (!kind) continue;
            const indices = layer.slice(layer[3] >= NAMED_VERSION ? 18 : 15);
            const index = kind === 'game' ? layer[14] : indices[KINDS[kind].index];
            this.layers[kind] = { width: layer[4], height: layer[5], tiles: datafile.block(index) };
        }
        this.width = this.layers.game.width;
        this.height = this.layers.game.height;
    }

    /** Returns the tile at a position in world units: [x, y]. */
    tileAt(x, y) {
        const clamp = (value, size) => Math.min(Math.max(Math.trunc(value / TILE), 0), size - 1);
        return [clamp(x, this.width), clamp(y, this.height)];
    }

    /** Returns the id in a layer at a position; 0 if the map lacks the layer. */
    idAt(kind, x, y) {
        const layer = this.layers[kind];
        if (!layer) return 0;
        const [column, row] = this.tileAt(x, y);
        return layer.tiles[(row * this.width + column) * KINDS[kind].bytes + KINDS[kind].id];
    }
}
