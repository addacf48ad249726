// Pointers on the canvas: dragging moves the view, the wheel and two fingers zoom, a tap selects.
import type { Camera } from './camera';

const MAX_TAP_TRAVEL_PX = 5;

export interface GestureListener { tap(x: number, y: number): void; doubleTap(x: number, y: number): void; moved(): void; zoomed(): void }

export function listenToGestures(canvas: HTMLCanvasElement, camera: Camera, taps: GestureListener): void {
    const pointers = new Map<number, { x: number; y: number }>();
    let travelled = 0;
    const place = (event: MouseEvent): { x: number; y: number } => {
        const box = canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        travelled = 0;
    });
    canvas.addEventListener('pointermove', (event) => {
        const before = pointers.get(event.pointerId);
        if (!before) return;
        const now = place(event);
        const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
        if (other) {
            const gap = Math.hypot(before.x - other.x, before.y - other.y);
            taps.zoomed();
            if (gap > 0) camera.zoomBy(Math.hypot(now.x - other.x, now.y - other.y) / gap, other.x, other.y);
        } else {
            camera.moveBy(now.x - before.x, now.y - before.y);
        }
        travelled += Math.hypot(now.x - before.x, now.y - before.y);
        pointers.set(event.pointerId, now);
        if (travelled > MAX_TAP_TRAVEL_PX) taps.moved();
    });
    const up = (event: PointerEvent): void => {
        if (pointers.delete(event.pointerId) && event.type === 'pointerup' && travelled <= MAX_TAP_TRAVEL_PX) {
            const { x, y } = place(event);
            taps.tap(x, y);
        }
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('dblclick', (event) => {
        const { x, y } = place(event);
        taps.doubleTap(x, y);
    });
    canvas.addEventListener('wheel', (event) => {
        event.preventDefault();
        taps.zoomed();
        const { x, y } = place(event);
        camera.zoomBy(Math.exp(-event.deltaY / 400), x, y);
    }, { passive: false });
}
