// Colours of players and items. They are bright, because the map's ground is dark in both themes.
import { int, text, type Item } from './objects';
import type { Moment } from './moment';

const BODIES = ['#f2c14e', '#5bc0eb', '#9bc53d', '#e55934', '#c792ea', '#fa7921', '#4ecdc4', '#ff6b9d', '#b8e986', '#8fa8ff'];

export const WEAPON_COLORS = ['#d7ccc8', '#eceff1', '#ffb74d', '#ef5350', '#64b5f6', '#b39ddb'];

/** Unpacks a skin colour as DDNet packs it: hue, saturation and the upper half of lightness, one byte each. */
function packed(value: number): string {
    const hue = ((value >>> 16) & 0xff) / 255 * 360;
    const saturation = ((value >>> 8) & 0xff) / 255 * 100;
    const lightness = 50 + (value & 0xff) / 255 * 50;
    return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${lightness.toFixed(0)}%)`;
}

/** The mean colour of the body of each skin that all clients have. */
const SKINS: Record<string, string> = {
    bluekitty: '#a2d4e0', bluestripe: '#9fb0d7', brownbear: '#c88861', cammo: '#4a8f40', cammostripes: '#4e9642', coala: '#c2c3c2',
    default: '#c09e62', limekitty: '#bbdab8', pinky: '#f09cb6', redbopp: '#e43759', redstripe: '#eb7f90', saddo: '#66b395',
    toptri: '#add8b9', twinbop: '#e4a1c5', twintri: '#c7dc7c', warpaint: '#ca9d46',
};

const TEAMS_FLAG = 1;

/** A cache: the skin colours in each client_info item; null if they are unknown. */
const skins = new WeakMap<Item, { body: string; feet: string } | null>();

function ownSkin(info: Item): { body: string; feet: string } | null {
    if (int(info, 'client_info.use_custom_color')) {
        return { body: packed(int(info, 'client_info.color_body')), feet: packed(int(info, 'client_info.color_feet')) };
    }
    // A variant's name ends with the name of its base skin: santa_coala.
    const body = SKINS[text(info, 'client_info.skin', 6).replace(/^.*_/, '')];
    return body === undefined ? null : { body, feet: body };
}

/** Returns the colours of body and feet of a client's tee. */
export function skin(moment: Moment, client: number): { body: string; feet: string } {
    const info = moment.get('client_info', client);
    const player = moment.get('player_info', client);
    if (player && moment.gameFlags & TEAMS_FLAG) {
        const body = int(player, 'player_info.team') === 1 ? '#5b8cff' : '#ff5b5b';
        return { body, feet: body };
    }
    let own = info && skins.get(info);
    if (info && own === undefined) skins.set(info, own = ownSkin(info));
    if (own) return own;
    const body = BODIES[client % BODIES.length] ?? '#f2c14e';
    return { body, feet: body };
}

/** Whether the client's tee is frozen in this moment. */
export function isFrozen(moment: Moment, client: number): boolean {
    const more: Item | undefined = moment.get('ddnet_character', client);
    if (!more) return false;
    const end = int(more, 'ddnet_character.freeze_end');
    return end === -1 || end > moment.tick;
}
