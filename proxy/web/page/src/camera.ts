// The part of the world that the canvas shows.

const MAX_SCALE = 4; // screen pixels for each world unit
const MIN_SCALE = 1 / 64;

export class Camera {
    x = 0;
    y = 0;
    scale = 0.75;
    width = 1;
    height = 1;

    toScreen(x: number, y: number): { x: number; y: number } {
        return { x: (x - this.x) * this.scale + this.width / 2, y: (y - this.y) * this.scale + this.height / 2 };
    }

    toWorld(x: number, y: number): { x: number; y: number } {
        return { x: (x - this.width / 2) / this.scale + this.x, y: (y - this.height / 2) / this.scale + this.y };
    }

    /** Enlarges the view by `factor`. The point of the world at (x, y) on the screen stays there. */
    zoomBy(factor: number, x = this.width / 2, y = this.height / 2): void {
        const before = this.toWorld(x, y);
        this.scale = Math.min(Math.max(this.scale * factor, MIN_SCALE), MAX_SCALE);
        const after = this.toWorld(x, y);
        this.x += before.x - after.x;
        this.y += before.y - after.y;
    }

    moveBy(dx: number, dy: number): void {
        this.x -= dx / this.scale;
        this.y -= dy / this.scale;
    }

    showArea(left: number, top: number, right: number, bottom: number): void {
        this.x = (left + right) / 2;
        this.y = (top + bottom) / 2;
        this.scale = Math.min(Math.max(Math.min(this.width / (right - left), this.height / (bottom - top)) * 0.96, MIN_SCALE), MAX_SCALE);
    }

    /** Moves the view so that it shows as little as possible outside an area of this size with its corner at (0, 0).
     *  `covered`: pixels at the left edge of the canvas that buttons cover. */
    keepInside(width: number, height: number, covered = 0): void {
        const keep = (at: number, shown: number, size: number, margin: number): number =>
            (shown >= size + margin ? (size - margin) / 2 : Math.min(Math.max(at, shown / 2 - margin), size - shown / 2));
        this.x = keep(this.x, this.width / this.scale, width, covered / this.scale);
        this.y = keep(this.y, this.height / this.scale, height, 0);
    }

    get visibleArea(): { left: number; top: number; right: number; bottom: number } {
        const { x: left, y: top } = this.toWorld(0, 0);
        const { x: right, y: bottom } = this.toWorld(this.width, this.height);
        return { left, top, right, bottom };
    }

    /** Sets the context's transformation, so that its coordinates are world units. */
    applyToContext(context: CanvasRenderingContext2D, ratio: number): void {
        const scale = this.scale * ratio;
        context.setTransform(scale, 0, 0, scale, (this.width / 2 - this.x * this.scale) * ratio,
            (this.height / 2 - this.y * this.scale) * ratio);
    }
}
