// Draws tees: body, feet, eyes that look where the tee aims, weapon, hook and name.
import { isFrozen, skin, WEAPON_COLORS } from '../colors';
import { shown } from '../dom';
import type { Moment } from '../moment';
import { int, type Item } from '../objects';

type Context = CanvasRenderingContext2D;

export interface Place { x: number; y: number }

const RADIUS = 20;
const NINJA = 5;

function hook(context: Context, item: Item, at: Place): void {
    if (int(item, 'character.hook_state') <= 0) return;
    const x = int(item, 'character.hook_x');
    const y = int(item, 'character.hook_y');
    context.strokeStyle = '#e0e0e0';
    context.lineWidth = 3;
    context.setLineDash([7, 4]);
    context.beginPath();
    context.moveTo(at.x, at.y);
    context.lineTo(x, y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = '#ffffff';
    context.beginPath();
    context.arc(x, y, 5, 0, 7);
    context.fill();
}

function weapon(context: Context, item: Item, at: Place, angle: number): void {
    const kind = int(item, 'character.weapon');
    context.save();
    context.translate(at.x, at.y);
    context.rotate(angle);
    context.fillStyle = WEAPON_COLORS[kind] ?? '#ffffff';
    context.strokeStyle = '#10141a';
    context.lineWidth = 1.5;
    const long = kind === NINJA ? 30 : 22;
    const thick = kind === 0 || kind === 3 ? 9 : 6;
    context.beginPath();
    context.roundRect(12, -thick / 2, long, thick, 2);
    if (kind === 0) context.roundRect(12 + long - 4, -10, 10, 20, 2); // the head of the hammer
    context.fill();
    context.stroke();
    context.restore();
}

function ellipse(context: Context, x: number, y: number, rx: number, ry: number, color: string, angle = 0): void {
    context.fillStyle = color;
    context.beginPath();
    context.ellipse(x, y, rx, ry, angle, 0, 7);
    context.fill();
}

function body(context: Context, at: Place, angle: number, colors: { body: string; feet: string }): void {
    context.strokeStyle = '#10141a';
    context.lineWidth = 2.5;
    for (const side of [-8, 8]) {
        ellipse(context, at.x + side, at.y + 15, 10, 6, colors.feet);
        context.stroke();
    }
    ellipse(context, at.x, at.y - 2, RADIUS, RADIUS, colors.body);
    context.stroke();
    const dx = Math.cos(angle) * 8;
    const dy = Math.sin(angle) * 7 - 4;
    for (const side of [-4.5, 4.5]) ellipse(context, at.x + dx + side, at.y + dy, 3.2, 5.5, '#10141a');
}

function frozen(context: Context, at: Place): void {
    ellipse(context, at.x, at.y, RADIUS + 7, RADIUS + 7, 'rgb(110 190 255 / 38%)');
    context.strokeStyle = '#bfe4ff';
    context.lineWidth = 2;
    context.setLineDash([4, 5]);
    context.stroke();
    context.setLineDash([]);
}

export function tee(context: Context, moment: Moment, item: Item, at: Place): void {
    const angle = int(item, 'character.angle') / 256;
    hook(context, item, at);
    weapon(context, item, at, angle);
    body(context, at, angle, skin(moment, item.id));
    if (isFrozen(moment, item.id)) frozen(context, at);
}

export interface Plate { left: number; right: number; top: number }

const PLATE_HEIGHT = 17;
const MOST_STEPS = 3;

/** Returns a height at which the name does not overlap the other names; after a few attempts, lets it overlap. */
function freeTop(plates: readonly Plate[], left: number, right: number, top: number): number {
    for (let step = 0; step < MOST_STEPS; ++step) {
        const way = top - step * (PLATE_HEIGHT + 1);
        if (!plates.some((each) => each.left < right && left < each.right && Math.abs(each.top - way) < PLATE_HEIGHT)) return way;
    }
    return top;
}

/** Draws a name in screen pixels, so that it can be read from far away. `plates`: the names drawn so far. */
export function namePlate(context: Context, name: string, at: Place, chosen: boolean, scale: number, plates: Plate[]): void {
    const text = shown(name);
    context.font = `${chosen ? '600' : '500'} 12px system-ui, sans-serif`;
    context.direction = 'ltr';
    context.textAlign = 'center';
    const width = context.measureText(text).width + 10;
    const left = at.x - width / 2;
    const top = freeTop(plates, left, left + width, at.y - Math.max(34 * scale, 12) - 18);
    plates.push({ left, right: left + width, top });
    context.fillStyle = chosen ? '#ffd54a' : 'rgb(10 14 20 / 78%)';
    context.beginPath();
    context.roundRect(left, top, width, PLATE_HEIGHT, 5);
    context.fill();
    context.fillStyle = chosen ? '#10141a' : '#ffffff';
    context.fillText(text, at.x, top + 12.5);
}

export function ring(context: Context, at: Place): void {
    context.strokeStyle = '#ffd54a';
    context.lineWidth = 3;
    context.beginPath();
    context.arc(at.x, at.y, RADIUS + 12, 0, 7);
    context.stroke();
}
