// Draws a whole map as one small picture.

const PIXELS = 2; // size of a tile in the picture, unless the map is too large for it
const MOST_PIXELS = 4 << 20;
const LONGEST_SIDE = 8192; // some browsers draw no longer canvas

/** `colorAt`: returns the colour of a tile as #rrggbb. */
export function overview(width: number, height: number, colorAt: (x: number, y: number) => string): HTMLCanvasElement {
    const scale = Math.min(PIXELS, Math.sqrt(MOST_PIXELS / (width * height)), LONGEST_SIDE / Math.max(width, height));
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
