// Draws tees: body, feet, eyes that look where the tee aims, weapon, hook and name.
import { isFrozen, teeColors, WEAPON_COLORS } from '../colors';
import { visibleText } from '../dom';
import type { Moment } from '../moment';
import { intField, type Item } from '../objects';

type Context = CanvasRenderingContext2D;

export interface Place { x: number; y: number }

const TEE_RADIUS = 20;
const NINJA_WEAPON = 5;

function drawHook(context: Context, item: Item, at: Place): void {
    if (intField(item, 'character.hook_state') <= 0) return;
    const x = intField(item, 'character.hook_x');
    const y = intField(item, 'character.hook_y');
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

function drawWeapon(context: Context, item: Item, at: Place, angle: number): void {
    const kind = intField(item, 'character.weapon');
    context.save();
    context.translate(at.x, at.y);
    context.rotate(angle);
    context.fillStyle = WEAPON_COLORS[kind] ?? '#ffffff';
    context.strokeStyle = '#10141a';
    context.lineWidth = 1.5;
    const long = kind === NINJA_WEAPON ? 30 : 22;
    const thick = kind === 0 || kind === 3 ? 9 : 6;
    context.beginPath();
    context.roundRect(12, -thick / 2, long, thick, 2);
    if (kind === 0) context.roundRect(12 + long - 4, -10, 10, 20, 2); // the head of the hammer
    context.fill();
    context.stroke();
    context.restore();
}

function drawEllipse(context: Context, x: number, y: number, rx: number, ry: number, color: string, angle = 0): void {
    context.fillStyle = color;
    context.beginPath();
    context.ellipse(x, y, rx, ry, angle, 0, 7);
    context.fill();
}

function drawBody(context: Context, at: Place, angle: number, colors: { body: string; feet: string }): void {
    context.strokeStyle = '#10141a';
    context.lineWidth = 2.5;
    for (const side of [-8, 8]) {
        drawEllipse(context, at.x + side, at.y + 15, 10, 6, colors.feet);
        context.stroke();
    }
    drawEllipse(context, at.x, at.y - 2, TEE_RADIUS, TEE_RADIUS, colors.body);
    context.stroke();
    const dx = Math.cos(angle) * 8;
    const dy = Math.sin(angle) * 7 - 4;
    for (const side of [-4.5, 4.5]) drawEllipse(context, at.x + dx + side, at.y + dy, 3.2, 5.5, '#10141a');
}

function drawFrozenRing(context: Context, at: Place): void {
    drawEllipse(context, at.x, at.y, TEE_RADIUS + 7, TEE_RADIUS + 7, 'rgb(110 190 255 / 38%)');
    context.strokeStyle = '#bfe4ff';
    context.lineWidth = 2;
    context.setLineDash([4, 5]);
    context.stroke();
    context.setLineDash([]);
}

export function drawTee(context: Context, moment: Moment, item: Item, at: Place): void {
    const angle = intField(item, 'character.angle') / 256;
    drawHook(context, item, at);
    drawWeapon(context, item, at, angle);
    drawBody(context, at, angle, teeColors(moment, item.id));
    if (isFrozen(moment, item.id)) drawFrozenRing(context, at);
}

export interface NamePlate { left: number; right: number; top: number }

const PLATE_HEIGHT = 17;
const MAX_PLATE_STEPS = 5;

/** Returns a height at which the name does not overlap the other names; after a few attempts, lets it overlap. */
function findFreeTop(plates: readonly NamePlate[], left: number, right: number, top: number): number {
    for (let step = 0; step < MAX_PLATE_STEPS; ++step) {
        const way = top - step * (PLATE_HEIGHT + 1);
        if (!plates.some((each) => each.left < right && left < each.right && Math.abs(each.top - way) < PLATE_HEIGHT)) return way;
    }
    return top;
}

/** Draws a name in screen pixels, so that it can be read from far away. `plates`: the names drawn so far. */
export function drawNamePlate(context: Context, name: string, at: Place, chosen: boolean, scale: number, plates: NamePlate[]): void {
    const text = visibleText(name);
    context.font = `${chosen ? '600' : '500'} 12px system-ui, sans-serif`;
    context.direction = 'ltr';
    context.textAlign = 'center';
    const width = context.measureText(text).width + 10;
    const left = at.x - width / 2;
    const top = findFreeTop(plates, left, left + width, at.y - Math.max(34 * scale, 12) - 18);
    plates.push({ left, right: left + width, top });
    context.fillStyle = chosen ? '#ffd54a' : 'rgb(10 14 20 / 78%)';
    context.beginPath();
    context.roundRect(left, top, width, PLATE_HEIGHT, 5);
    context.fill();
    context.fillStyle = chosen ? '#10141a' : '#ffffff';
    context.fillText(text, at.x, top + 12.5);
}

export function drawSelectionRing(context: Context, at: Place): void {
    context.strokeStyle = '#ffd54a';
    context.lineWidth = 3;
    context.beginPath();
    context.arc(at.x, at.y, TEE_RADIUS + 12, 0, 7);
    context.stroke();
}
