// A map's physics layers: the tiles, and pictures of them like those of `twscope map --png`.
import { fetchJson, decodeBase64 } from './api';
import { Design, showsImages } from './design';

export const TILE = 32;
const CHUNK_TILES = 32; // side length of a picture, in tiles
const TILE_PIXELS = 16; // side length of a tile in a picture
const FIRST_ENTITY = 192; // tiles from this index on mark where things appear; they are drawn faintly
const ENTITY_ALPHA = 0.35;
const SHARP_SCALE = 2; // scale of pictures with the map's images, if few are in sight
const MAX_PICTURES = 96; // a sharp picture counts as SHARP ** 2
const MAX_PAINT_MS = 10; // longest time that a frame spends on painting pictures
export const AIR = '#1d2127';

interface Swatch { layer: string; first: number; last: number; color: string; label: string }
interface Layer { tiles: Uint8Array; numbers: Uint8Array | null; names: Record<string, string>; colors: string[] }
interface MapAnswer {
    width: number; height: number; swatches: Swatch[];
    layers: Record<string, { tiles: string; numbers?: string; names: Record<string, string> }>;
}

const MARKED_LAYERS = ['tele', 'speedup', 'switch', 'tune'];
const OVERVIEW_LAYERS = ['game', 'front', ...MARKED_LAYERS];
export interface TileColor { color: string; label: string }
export interface TileFact { layer: string; index: number; name: string; number: number }

const OVERVIEW_TILE_PIXELS = 2; // side length of a tile in the picture of a whole map, unless the map is too large
const MAX_OVERVIEW_PIXELS = 4 << 20;
const MAX_CANVAS_SIDE = 8192; // some browsers draw no longer canvas

/** Draws a whole map as one small picture. `colorAt`: returns the colour of a tile as #rrggbb. */
function drawOverview(width: number, height: number, colorAt: (x: number, y: number) => string): HTMLCanvasElement {
    const scale = Math.min(OVERVIEW_TILE_PIXELS, Math.sqrt(MAX_OVERVIEW_PIXELS / (width * height)), MAX_CANVAS_SIDE / Math.max(width, height));
    const picture = document.createElement('canvas');
    picture.width = Math.max(Math.floor(width * scale), 1);
    picture.height = Math.max(Math.floor(height * scale), 1);
    const context = picture.getContext('2d');
    if (!context) return picture;
    const image = context.createImageData(picture.width, picture.height);
    const pixels = new DataView(image.data.buffer);
    const known = new Map<string, number>();
    for (let y = 0, at = 0; y < picture.height; ++y) {
        for (let x = 0; x < picture.width; ++x, at += 4) {
            const color = colorAt(Math.floor(x * width / picture.width), Math.floor(y * height / picture.height));
            let value = known.get(color);
            if (value === undefined) known.set(color, value = (Number.parseInt(color.slice(1), 16) << 8 | 0xff) >>> 0);
            pixels.setUint32(at, value);
        }
    }
    context.putImageData(image, 0, 0);
    return picture;
}

export class Tiles {
    readonly width: number;
    readonly height: number;
    private readonly layers = new Map<string, Layer>();
    private readonly pictures = new Map<number, HTMLCanvasElement>();
    /** A picture of the whole map, for views in which too many of the other pictures would be needed. */
    private overviewPicture: HTMLCanvasElement | null = null;
    /** The map's images; null if the map has no images, or they are not loaded. */
    private design: Design | null = null;
    private isDesignRequested = false;
    /** The design that the pictures were painted with. */
    private paintedDesign: Design | null = null;
    /** The meaning of the colours of the tiles that this map contains. */
    readonly legend: TileColor[] = [];

    constructor(answer: MapAnswer, private readonly session: number) {
        this.width = answer.width;
        this.height = answer.height;
        for (const [name, layer] of Object.entries(answer.layers)) {
            const colors: string[] = [];
            const swatches = answer.swatches.filter((each) => each.layer === (name === 'front' ? 'game' : name));
            for (let index = 0; index < 256; ++index) { // the first matching row applies
                colors.push(swatches.find((each) => index >= each.first && index <= each.last)?.color ?? AIR);
            }
            this.layers.set(name, { tiles: decodeBase64(layer.tiles), numbers: layer.numbers ? decodeBase64(layer.numbers) : null,
                names: layer.names, colors });
            const used = new Set(this.layers.get(name)?.tiles);
            for (const { first, last, color, label } of swatches) {
                const isUsed = [...used].some((index) => index !== 0 && index >= first && index <= last);
                if (!isUsed || this.legend.some((each) => each.label === label)) continue;
                this.legend.push({ color: first < FIRST_ENTITY ? color : `color-mix(in srgb, ${color} ${ENTITY_ALPHA * 100}%, ${AIR})`, label });
            }
        }
    }

    static async load(session: number): Promise<Tiles> {
        return new Tiles(await fetchJson<MapAnswer>(`/api/map?session=${session}`), session);
    }

    tileIndex(layer: string, x: number, y: number): number {
        const cx = Math.min(Math.max(x, 0), this.width - 1);
        const cy = Math.min(Math.max(y, 0), this.height - 1);
        return this.layers.get(layer)?.tiles[cy * this.width + cx] ?? 0;
    }

    /** Returns the tiles of all layers at this position, without air. */
    tilesAt(x: number, y: number): TileFact[] {
        if (x < 0 || y < 0 || x >= this.width || y >= this.height) return [{ layer: 'map', index: 0, name: 'outside', number: 0 }];
        const facts: TileFact[] = [];
        for (const [name, layer] of this.layers) {
            const index = this.tileIndex(name, x, y);
            if (index !== 0) facts.push({ layer: name, index, name: layer.names[index] ?? '', number: layer.numbers?.[y * this.width + x] ?? 0 });
        }
        return facts;
    }

    /** Draws the part of the map that the view shows. The context's coordinates are world units. */
    draw(context: CanvasRenderingContext2D, left: number, top: number, right: number, bottom: number): void {
        this.drawOutsideMap(context, left, top, right, bottom);
        const side = CHUNK_TILES * TILE;
        const chunks = (from: number, to: number, length: number): [number, number] =>
            [Math.max(Math.floor(from / side), 0), Math.ceil(Math.min(to, length * TILE) / side)];
        const [x0, x1] = chunks(left, right, this.width);
        const [y0, y1] = chunks(top, bottom, this.height);
        this.chooseDesign();
        const count = (x1 - x0) * (y1 - y0);
        const isSharp = this.paintedDesign !== null && count * SHARP_SCALE ** 2 <= MAX_PICTURES;
        const until = performance.now() + MAX_PAINT_MS;
        const pictures: [HTMLCanvasElement, number, number][] = [];
        for (let cy = y0; cy < y1 && count <= MAX_PICTURES; ++cy) {
            for (let cx = x0; cx < x1; ++cx) {
                const picture = this.chunkPicture(cx, cy, isSharp, performance.now() < until);
                if (picture) pictures.push([picture, cx * side, cy * side]);
            }
        }
        if (pictures.length < count) {
            context.imageSmoothingEnabled = true;
            context.drawImage(this.overview, 0, 0, this.width * TILE, this.height * TILE);
        }
        context.imageSmoothingEnabled = false;
        for (const [picture, x, y] of pictures) context.drawImage(picture, x, y, side, side);
    }

    /** Discards the pictures if the viewer has switched the map's images on or off, or if the images were loaded. */
    private chooseDesign(): void {
        if (showsImages() && !this.isDesignRequested) {
            this.isDesignRequested = true;
            void Design.load(this.session).then((design) => { this.design = design; }).catch(() => undefined);
        }
        const design = showsImages() ? this.design : null;
        if (design === this.paintedDesign) return;
        this.pictures.clear();
        this.paintedDesign = design;
    }

    private get overview(): HTMLCanvasElement { return this.overviewPicture ??= drawOverview(this.width, this.height, (x, y) => this.colorAt(x, y)); }

    /** Draws the area outside the map. The outermost tiles continue there, as in the game, but darker, so that the edge is
     *  visible. */
    private drawOutsideMap(context: CanvasRenderingContext2D, left: number, top: number, right: number, bottom: number): void {
        const [width, height] = [this.width * TILE, this.height * TILE];
        if (left >= 0 && top >= 0 && right <= width && bottom <= height) return;
        const picture = this.overview;
        /** Returns strips as [from, to] in world units and [from, to] in the picture. */
        const strips = (from: number, to: number, size: number, pixels: number): [number, number, number, number][] =>
            [[from, Math.min(0, to), 0, 1], [0, size, 0, pixels], [Math.max(size, from), to, pixels - 1, 1]];
        context.imageSmoothingEnabled = false;
        context.fillStyle = 'rgb(16 18 22 / 45%)';
        for (const [x0, x1, sx, sw] of strips(left, right, width, picture.width)) {
            for (const [y0, y1, sy, sh] of strips(top, bottom, height, picture.height)) {
                if (x1 <= x0 || y1 <= y0 || (x0 === 0 && x1 === width && y0 === 0 && y1 === height)) continue;
                context.drawImage(picture, sx, sy, sw, sh, x0, y0, x1 - x0, y1 - y0);
                context.fillRect(x0, y0, x1 - x0, y1 - y0);
            }
        }
    }

    /** Returns the colour of a tile in the picture of the whole map: that of the first layer, by importance, that is not air. */
    private colorAt(x: number, y: number): string {
        for (const name of OVERVIEW_LAYERS) {
            const index = this.tileIndex(name, x, y);
            if (index !== 0) return this.layers.get(name)?.colors[index] ?? AIR;
        }
        return this.layers.get('game')?.colors[0] ?? AIR;
    }

    /** Returns the picture of a part of the map. If it must not be painted now, returns an existing picture of another size, or
     *  null. */
    private chunkPicture(cx: number, cy: number, isSharp: boolean, mayPaint: boolean): HTMLCanvasElement | null {
        const key = 2 * (cy * 65536 + cx);
        const [wanted, other] = isSharp ? [key + 1, key] : [key, key + 1];
        let picture = this.pictures.get(wanted);
        if (picture) {
            this.pictures.delete(wanted); // the picture moves to the end, because the first pictures are removed
        } else {
            if (!mayPaint) return this.pictures.get(other) ?? null;
            picture = this.paintChunk(cx, cy, isSharp ? SHARP_SCALE : 1);
        }
        this.pictures.set(wanted, picture);
        const sizeOf = ({ width }: HTMLCanvasElement): number => (width / CHUNK_TILES / TILE_PIXELS) ** 2;
        let total = [...this.pictures.values()].reduce((sum, each) => sum + sizeOf(each), 0);
        for (const [old, each] of this.pictures) {
            if (total <= MAX_PICTURES) break;
            this.pictures.delete(old);
            total -= sizeOf(each);
        }
        return picture;
    }

    private paintChunk(cx: number, cy: number, scale: number): HTMLCanvasElement {
        const picture = document.createElement('canvas');
        picture.width = picture.height = CHUNK_TILES * TILE_PIXELS * scale;
        const context = picture.getContext('2d');
        if (!context) return picture;
        const [left, top] = [cx * CHUNK_TILES, cy * CHUNK_TILES];
        const [right, bottom] = [Math.min(left + CHUNK_TILES, this.width), Math.min(top + CHUNK_TILES, this.height)];
        const paintTile = (x: number, y: number): void => this.paintTile(context, x, y, (x - left) * TILE_PIXELS, (y - top) * TILE_PIXELS);
        context.scale(scale, scale);
        context.beginPath();
        context.rect(0, 0, (right - left) * TILE_PIXELS, (bottom - top) * TILE_PIXELS);
        context.clip();
        context.fillStyle = AIR;
        context.fillRect(0, 0, picture.width, picture.height);
        for (let y = top; y < bottom; ++y) {
            for (let x = left; x < right; ++x) paintTile(x, y);
        }
        this.paintedDesign?.paintSquare(context, left, top, CHUNK_TILES, TILE_PIXELS, (x, y) => {
            if (this.tileIndex('game', x, y) || this.tileIndex('front', x, y)) paintTile(x, y);
        });
        return picture;
    }

    private paintTile(context: CanvasRenderingContext2D, x: number, y: number, px: number, py: number): void {
        const colors = this.layers.get('game')?.colors ?? [];
        const game = this.tileIndex('game', x, y);
        const front = this.tileIndex('front', x, y);
        const square = (color: string | undefined, left: number, top: number, side: number): void => {
            context.fillStyle = color ?? AIR;
            context.fillRect(px + left, py + top, side, side);
        };
        const index = game || front;
        context.globalAlpha = index < FIRST_ENTITY ? 1 : ENTITY_ALPHA;
        square(colors[index], 0, 0, TILE_PIXELS);
        context.globalAlpha = 1;
        if (game && front) square(colors[front], TILE_PIXELS / 4, TILE_PIXELS / 4, TILE_PIXELS / 2);
        MARKED_LAYERS.forEach((name, order) => {
            const mark = this.tileIndex(name, x, y);
            if (mark) square(this.layers.get(name)?.colors[mark], (order % 2) * TILE_PIXELS / 2, Math.floor(order / 2) * TILE_PIXELS / 2, TILE_PIXELS / 2);
        });
    }
}
