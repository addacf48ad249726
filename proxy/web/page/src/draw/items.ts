// Draws all items except tees: shots, lasers, doors, pickups, flags, and the events of a tick.
import { WEAPON_COLORS } from '../colors';
import type { Moment } from '../moment';
import { shownFields, intField, objectName, positionOf, type Item } from '../objects';

type Context = CanvasRenderingContext2D;

const TICKS_PER_SECOND = 50;

/** Speed and curvature of each weapon's projectiles on servers with default tunings. */
const PROJECTILE_FLIGHTS: Record<number, { speed: number; curvature: number }> = {
    1: { speed: 2200, curvature: 1.25 }, 2: { speed: 2750, curvature: 1.25 }, 3: { speed: 1000, curvature: 7 },
};

/** Returns the position of a projectile at a tick, from the position, direction and tick of the shot. */
export function projectilePosition(item: Item, tick: number): { x: number; y: number } | null {
    const from = positionOf(item);
    const name = objectName(item);
    if (!from) return null;
    const seconds = (tick - intField(item, `${name}.start_tick`)) / TICKS_PER_SECOND;
    const kind = PROJECTILE_FLIGHTS[intField(item, `${name}.type`)];
    if (!kind || seconds < 0 || seconds > 20 || name === 'ddrace_projectile') return from;
    const per = name === 'ddnet_projectile' ? 1e6 : 100;
    let vx = intField(item, `${name}.vel_x`) / per;
    let vy = intField(item, `${name}.vel_y`) / per;
    const length = Math.hypot(vx, vy);
    if (name === 'ddnet_projectile' && length > 0) { vx /= length; vy /= length; }
    const way = seconds * kind.speed;
    return { x: from.x + vx * way, y: from.y + vy * way + kind.curvature / 10000 * way * way };
}

function drawProjectile(context: Context, item: Item, moment: Moment): void {
    const at = projectilePosition(item, moment.tick);
    if (!at) return;
    context.fillStyle = WEAPON_COLORS[intField(item, `${objectName(item)}.type`)] ?? '#ffffff';
    context.strokeStyle = '#10141a';
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(at.x, at.y, 7, 0, 7);
    context.fill();
    context.stroke();
}

const LASER_STYLES: Record<string, { color: string; width: number }> = {
    door: { color: '#9ccc65', width: 7 }, freeze: { color: '#90caf9', width: 4 }, dragger: { color: '#ba68c8', width: 4 },
    gun: { color: '#ffcc80', width: 4 }, plasma: { color: '#ffcc80', width: 4 }, shotgun: { color: '#ffab91', width: 5 },
    rifle: { color: '#64b5f6', width: 5 },
};

function drawLaser(context: Context, item: Item): void {
    const name = objectName(item);
    const end = name === 'laser' ? ['laser.x', 'laser.y'] as const : ['ddnet_laser.to_x', 'ddnet_laser.to_y'] as const;
    const kind = name === 'laser' ? 'rifle' : (shownFields(item).find((field) => field.name === 'type')?.meaning ?? '').toLowerCase();
    const look = Object.entries(LASER_STYLES).find(([known]) => kind.includes(known))?.[1] ?? LASER_STYLES['rifle'];
    const to = { x: intField(item, end[0]), y: intField(item, end[1]) };
    const from = { x: intField(item, `${name}.from_x`), y: intField(item, `${name}.from_y`) };
    context.strokeStyle = look?.color ?? '#64b5f6';
    context.lineWidth = look?.width ?? 5;
    context.lineCap = 'round';
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    context.fillStyle = context.strokeStyle;
    context.beginPath();
    context.arc(to.x, to.y, context.lineWidth, 0, 7);
    context.fill();
}

function traceHeart(context: Context, x: number, y: number): void {
    context.beginPath();
    context.moveTo(x, y + 9);
    context.bezierCurveTo(x - 16, y - 2, x - 7, y - 13, x, y - 5);
    context.bezierCurveTo(x + 7, y - 13, x + 16, y - 2, x, y + 9);
}

function traceShield(context: Context, x: number, y: number): void {
    context.beginPath();
    context.moveTo(x - 9, y - 9);
    context.lineTo(x + 9, y - 9);
    context.quadraticCurveTo(x + 9, y + 5, x, y + 11);
    context.quadraticCurveTo(x - 9, y + 5, x - 9, y - 9);
}

function drawPickup(context: Context, item: Item): void {
    const at = positionOf(item);
    if (!at) return;
    const name = objectName(item);
    const kind = intField(item, `${name}.type`);
    context.strokeStyle = '#10141a';
    context.lineWidth = 2;
    if (kind === 0) {
        context.fillStyle = '#ff5d73';
        traceHeart(context, at.x, at.y);
    } else if (kind === 1 || kind >= 4) {
        context.fillStyle = '#ffb300';
        traceShield(context, at.x, at.y);
    } else {
        context.fillStyle = WEAPON_COLORS[kind === 3 ? 5 : intField(item, `${name}.subtype`)] ?? '#ffffff';
        context.beginPath();
        context.roundRect(at.x - 14, at.y - 5, 28, 10, 3);
    }
    context.fill();
    context.stroke();
}

function drawFlag(context: Context, item: Item): void {
    const at = positionOf(item);
    if (!at) return;
    context.strokeStyle = '#eceff1';
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(at.x, at.y + 16);
    context.lineTo(at.x, at.y - 50);
    context.stroke();
    context.fillStyle = intField(item, 'flag.team') === 0 ? '#ff5b5b' : '#5b8cff';
    context.beginPath();
    context.moveTo(at.x, at.y - 50);
    context.lineTo(at.x + 34, at.y - 38);
    context.lineTo(at.x, at.y - 26);
    context.fill();
}

const EVENT_COLORS: Record<string, string> = {
    explosion: '#ff8a3d', hammer_hit: '#ffffff', spawn: '#a5d6a7', death: '#ef5350', damage_ind: '#ffab91',
    sound_world: 'rgb(255 255 255 / 40%)', map_sound_world: 'rgb(255 255 255 / 40%)',
};

function drawEvent(context: Context, item: Item, color: string): void {
    const at = positionOf(item);
    if (!at) return;
    context.strokeStyle = color;
    context.lineWidth = 3;
    context.beginPath();
    context.arc(at.x, at.y, objectName(item) === 'explosion' ? 48 : 16, 0, 7);
    context.stroke();
}

type DrawFunction = (context: Context, item: Item, moment: Moment) => void;
const DRAW_FUNCTIONS: Record<string, DrawFunction> = {
    projectile: drawProjectile, ddnet_projectile: drawProjectile, ddrace_projectile: drawProjectile, laser: drawLaser, ddnet_laser: drawLaser,
    pickup: drawPickup, ddnet_pickup: drawPickup, flag: drawFlag,
};

/** Draws all items except tees. */
export function drawItems(context: Context, moment: Moment): void {
    for (const item of moment.items.values()) {
        const name = objectName(item);
        const color = EVENT_COLORS[name];
        if (color) drawEvent(context, item, color);
        else DRAW_FUNCTIONS[name]?.(context, item, moment);
    }
}

/** Returns the position at which an item is drawn. A projectile has moved away from the position in its item. */
export function drawnPosition(item: Item, moment: Moment): { x: number; y: number } | null {
    return objectName(item).endsWith('projectile') ? projectilePosition(item, moment.tick) : positionOf(item);
}
