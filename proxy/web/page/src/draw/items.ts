// Draws all items except tees: shots, lasers, doors, pickups, flags, and the events of a tick.
import { WEAPON_COLORS } from '../colors';
import type { Moment } from '../moment';
import { fieldsOf, int, nameOf, positionOf, type Item } from '../objects';

type Context = CanvasRenderingContext2D;

const TICKS = 50;

/** Speed and curvature of each weapon's projectiles on servers with default tunings. */
const FLIGHTS: Record<number, { speed: number; curvature: number }> = {
    1: { speed: 2200, curvature: 1.25 }, 2: { speed: 2750, curvature: 1.25 }, 3: { speed: 1000, curvature: 7 },
};

/** Returns the position of a projectile at a tick, from the position, direction and tick of the shot. */
export function flight(item: Item, tick: number): { x: number; y: number } | null {
    const from = positionOf(item);
    const name = nameOf(item);
    if (!from) return null;
    const seconds = (tick - int(item, `${name}.start_tick`)) / TICKS;
    const kind = FLIGHTS[int(item, `${name}.type`)];
    if (!kind || seconds < 0 || seconds > 20 || name === 'ddrace_projectile') return from;
    const per = name === 'ddnet_projectile' ? 1e6 : 100;
    let vx = int(item, `${name}.vel_x`) / per;
    let vy = int(item, `${name}.vel_y`) / per;
    const length = Math.hypot(vx, vy);
    if (name === 'ddnet_projectile' && length > 0) { vx /= length; vy /= length; }
    const way = seconds * kind.speed;
    return { x: from.x + vx * way, y: from.y + vy * way + kind.curvature / 10000 * way * way };
}

function projectile(context: Context, item: Item, moment: Moment): void {
    const at = flight(item, moment.tick);
    if (!at) return;
    context.fillStyle = WEAPON_COLORS[int(item, `${nameOf(item)}.type`)] ?? '#ffffff';
    context.strokeStyle = '#10141a';
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(at.x, at.y, 7, 0, 7);
    context.fill();
    context.stroke();
}

const LINES: Record<string, { color: string; width: number }> = {
    door: { color: '#9ccc65', width: 7 }, freeze: { color: '#90caf9', width: 4 }, dragger: { color: '#ba68c8', width: 4 },
    gun: { color: '#ffcc80', width: 4 }, plasma: { color: '#ffcc80', width: 4 }, shotgun: { color: '#ffab91', width: 5 },
    rifle: { color: '#64b5f6', width: 5 },
};

function laser(context: Context, item: Item): void {
    const name = nameOf(item);
    const end = name === 'laser' ? ['laser.x', 'laser.y'] as const : ['ddnet_laser.to_x', 'ddnet_laser.to_y'] as const;
    const kind = name === 'laser' ? 'rifle' : (fieldsOf(item).find((field) => field.name === 'type')?.meaning ?? '').toLowerCase();
    const look = Object.entries(LINES).find(([known]) => kind.includes(known))?.[1] ?? LINES['rifle'];
    const to = { x: int(item, end[0]), y: int(item, end[1]) };
    const from = { x: int(item, `${name}.from_x`), y: int(item, `${name}.from_y`) };
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

function heart(context: Context, x: number, y: number): void {
    context.beginPath();
    context.moveTo(x, y + 9);
    context.bezierCurveTo(x - 16, y - 2, x - 7, y - 13, x, y - 5);
    context.bezierCurveTo(x + 7, y - 13, x + 16, y - 2, x, y + 9);
}

function shield(context: Context, x: number, y: number): void {
    context.beginPath();
    context.moveTo(x - 9, y - 9);
    context.lineTo(x + 9, y - 9);
    context.quadraticCurveTo(x + 9, y + 5, x, y + 11);
    context.quadraticCurveTo(x - 9, y + 5, x - 9, y - 9);
}

function pickup(context: Context, item: Item): void {
    const at = positionOf(item);
    if (!at) return;
    const name = nameOf(item);
    const kind = int(item, `${name}.type`);
    context.strokeStyle = '#10141a';
    context.lineWidth = 2;
    if (kind === 0) {
        context.fillStyle = '#ff5d73';
        heart(context, at.x, at.y);
    } else if (kind === 1 || kind >= 4) {
        context.fillStyle = '#ffb300';
        shield(context, at.x, at.y);
    } else {
        context.fillStyle = WEAPON_COLORS[kind === 3 ? 5 : int(item, `${name}.subtype`)] ?? '#ffffff';
        context.beginPath();
        context.roundRect(at.x - 14, at.y - 5, 28, 10, 3);
    }
    context.fill();
    context.stroke();
}

function flag(context: Context, item: Item): void {
    const at = positionOf(item);
    if (!at) return;
    context.strokeStyle = '#eceff1';
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(at.x, at.y + 16);
    context.lineTo(at.x, at.y - 50);
    context.stroke();
    context.fillStyle = int(item, 'flag.team') === 0 ? '#ff5b5b' : '#5b8cff';
    context.beginPath();
    context.moveTo(at.x, at.y - 50);
    context.lineTo(at.x + 34, at.y - 38);
    context.lineTo(at.x, at.y - 26);
    context.fill();
}

const EVENTS: Record<string, string> = {
    explosion: '#ff8a3d', hammer_hit: '#ffffff', spawn: '#a5d6a7', death: '#ef5350', damage_ind: '#ffab91',
    sound_world: 'rgb(255 255 255 / 40%)', map_sound_world: 'rgb(255 255 255 / 40%)',
};

function event(context: Context, item: Item, color: string): void {
    const at = positionOf(item);
    if (!at) return;
    context.strokeStyle = color;
    context.lineWidth = 3;
    context.beginPath();
    context.arc(at.x, at.y, nameOf(item) === 'explosion' ? 48 : 16, 0, 7);
    context.stroke();
}

type Draw = (context: Context, item: Item, moment: Moment) => void;
const DRAWS: Record<string, Draw> = {
    projectile, ddnet_projectile: projectile, ddrace_projectile: projectile, laser, ddnet_laser: laser,
    pickup, ddnet_pickup: pickup, flag,
};

/** Draws all items except tees. */
export function items(context: Context, moment: Moment): void {
    for (const item of moment.items.values()) {
        const name = nameOf(item);
        const color = EVENTS[name];
        if (color) event(context, item, color);
        else DRAWS[name]?.(context, item, moment);
    }
}

/** Returns the position at which an item is drawn. A projectile has moved away from the position in its item. */
export function drawnAt(item: Item, moment: Moment): { x: number; y: number } | null {
    return nameOf(item).endsWith('projectile') ? flight(item, moment.tick) : positionOf(item);
}
