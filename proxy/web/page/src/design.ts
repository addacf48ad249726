// The design of a map: tile layers that are drawn with the images in the map file.
import { fetchOk, fetchJson, decodeBase64 } from './api';

const STORAGE_KEY = 'twscope-images';
const OFF = 'off';
const IMAGE_COLUMNS = 16; // number of tiles in a row of an image
const TILE_UNITS = 32; // world units along a tile
const MAX_IMAGE_BYTES = 64 << 20; // limit of all coloured images, because each colour of an image takes a copy
const [FLIP_X, FLIP_Y, ROTATE] = [1, 2, 8];

interface Layer { width: number; height: number; offset: [number, number]; color: [number, number, number, number]; image: number | null }
interface DesignAnswer { images: { number: number; width: number; height: number }[]; layers: (Layer & { tiles: string })[] }
type Picture = ImageBitmap | undefined;

let isOn = localStorage.getItem(STORAGE_KEY) !== OFF;

/** Whether maps are drawn with their images, as the viewer chose. */
export const showsImages = (): boolean => isOn;

export function toggleImages(): void {
    isOn = !isOn;
    localStorage.setItem(STORAGE_KEY, isOn ? 'on' : OFF);
}

function makeColoredImage(pixels: Uint8ClampedArray, color: Layer['color'], width: number, height: number): Promise<ImageBitmap> {
    return createImageBitmap(new ImageData(pixels.map((value, at) => value * (color[at % 4] ?? 0) / 255), width, height));
}

export class Design {
    private constructor(private readonly layers: { layer: Layer; tiles: Uint8Array; picture: Picture }[]) {}

    /** Loads the design of a session's map; null if the map has no images. */
    static async load(session: number): Promise<Design | null> {
        const { images, layers } = await fetchJson<DesignAnswer>(`/api/map_design?session=${session}`);
        const pictures = new Map<string, ImageBitmap>();
        const keyOf = ({ image, color }: Layer): string => [image, ...color].join();
        let bytes = 0;
        for (const { number, width, height } of images) {
            const answer = await fetchOk(`/api/map_image?session=${session}&image=${number}`);
            const pixels = new Uint8ClampedArray(await answer.arrayBuffer());
            for (const layer of layers) {
                if (layer.image !== number || pictures.has(keyOf(layer)) || bytes + pixels.length > MAX_IMAGE_BYTES) continue;
                bytes += pixels.length;
                pictures.set(keyOf(layer), await makeColoredImage(pixels, layer.color, width, height));
            }
        }
        return images.length === 0 ? null
            : new Design(layers.map((layer) => ({ layer, tiles: decodeBase64(layer.tiles), picture: pictures.get(keyOf(layer)) })));
    }

    /** Paints a square of `side` by `side` tiles, whose upper left tile is (`left`, `top`) in the game layer. `pixels`: the size
     *  of a tile. `paintColor`: paints the colour of a game tile, in place of a tile whose image is not in the map. */
    paintSquare(context: CanvasRenderingContext2D, left: number, top: number, side: number, pixels: number,
        paintColor: (x: number, y: number) => void): void {
        for (const { layer, tiles, picture } of this.layers) {
            const [right, down] = [layer.offset[0] / TILE_UNITS, layer.offset[1] / TILE_UNITS];
            for (let y = Math.floor(top + down); y < top + side + down; ++y) {
                for (let x = Math.floor(left + right); x < left + side + right; ++x) {
                    // Outside a layer, its outermost tiles are repeated, as in the game.
                    const at = 2 * (Math.min(Math.max(y, 0), layer.height - 1) * layer.width + Math.min(Math.max(x, 0), layer.width - 1));
                    const [index = 0, flags = 0] = [tiles[at], tiles[at + 1]];
                    if (index === 0) continue;
                    if (picture) {
                        paintTile(context, picture, index, flags, (x - right - left) * pixels, (y - down - top) * pixels, pixels);
                    } else {
                        paintColor(Math.round(x - right), Math.round(y - down));
                    }
                }
            }
        }
    }
}

function paintTile(context: CanvasRenderingContext2D, picture: ImageBitmap, index: number, flags: number, px: number, py: number,
    pixels: number): void {
    const [width, height] = [picture.width / IMAGE_COLUMNS, picture.height / IMAGE_COLUMNS];
    const [sx, sy] = [index % IMAGE_COLUMNS * width, Math.floor(index / IMAGE_COLUMNS) * height];
    if ((flags & (FLIP_X | FLIP_Y | ROTATE)) === 0) return context.drawImage(picture, sx, sy, width, height, px, py, pixels, pixels);
    context.save();
    context.translate(px + pixels / 2, py + pixels / 2);
    if (flags & ROTATE) context.rotate(Math.PI / 2); // the last transformation applies first, so tiles are flipped, then rotated
    context.scale(flags & FLIP_X ? -1 : 1, flags & FLIP_Y ? -1 : 1);
    context.drawImage(picture, sx, sy, width, height, -pixels / 2, -pixels / 2, pixels, pixels);
    context.restore();
}
