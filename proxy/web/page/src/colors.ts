// Colours of players and items. They are bright, because the map's ground is dark in both themes.
import { intField, textField, type Item } from './objects';
import type { Moment } from './moment';

const BODY_COLORS = ['#f2c14e', '#5bc0eb', '#9bc53d', '#e55934', '#c792ea', '#fa7921', '#4ecdc4', '#ff6b9d', '#b8e986', '#8fa8ff'];

export const WEAPON_COLORS = ['#d7ccc8', '#eceff1', '#ffb74d', '#ef5350', '#64b5f6', '#b39ddb'];

/** Unpacks a skin colour as DDNet packs it: hue, saturation and the upper half of lightness, one byte each. */
function unpackColor(value: number): string {
    const hue = ((value >>> 16) & 0xff) / 255 * 360;
    const saturation = ((value >>> 8) & 0xff) / 255 * 100;
    const lightness = 50 + (value & 0xff) / 255 * 50;
    return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${lightness.toFixed(0)}%)`;
}

/** The mean colour of the body of each skin that all clients have. */
const SKIN_BODY_COLORS: Record<string, string> = {
    bluekitty: '#a2d4e0', bluestripe: '#9fb0d7', brownbear: '#c88861', cammo: '#4a8f40', cammostripes: '#4e9642', coala: '#c2c3c2',
    default: '#c09e62', limekitty: '#bbdab8', pinky: '#f09cb6', redbopp: '#e43759', redstripe: '#eb7f90', saddo: '#66b395',
    toptri: '#add8b9', twinbop: '#e4a1c5', twintri: '#c7dc7c', warpaint: '#ca9d46',
};

const TEAMS_FLAG = 1;

/** A cache: the skin colours in each client_info item; null if they are unknown. */
const skinCache = new WeakMap<Item, { body: string; feet: string } | null>();

function skinColors(info: Item): { body: string; feet: string } | null {
    if (intField(info, 'client_info.use_custom_color')) {
        return { body: unpackColor(intField(info, 'client_info.color_body')), feet: unpackColor(intField(info, 'client_info.color_feet')) };
    }
    // A variant's name ends with the name of its base skin: santa_coala.
    const body = SKIN_BODY_COLORS[textField(info, 'client_info.skin', 6).replace(/^.*_/, '')];
    return body === undefined ? null : { body, feet: body };
}

/** Returns the colours of body and feet of a client's tee. */
export function teeColors(moment: Moment, client: number): { body: string; feet: string } {
    const info = moment.get('client_info', client);
    const player = moment.get('player_info', client);
    if (player && moment.gameFlags & TEAMS_FLAG) {
        const body = intField(player, 'player_info.team') === 1 ? '#5b8cff' : '#ff5b5b';
        return { body, feet: body };
    }
    let own = info && skinCache.get(info);
    if (info && own === undefined) skinCache.set(info, own = skinColors(info));
    if (own) return own;
    const body = BODY_COLORS[client % BODY_COLORS.length] ?? '#f2c14e';
    return { body, feet: body };
}

/** Whether the client's tee is frozen in this moment. */
export function isFrozen(moment: Moment, client: number): boolean {
    const more: Item | undefined = moment.get('ddnet_character', client);
    if (!more) return false;
    const end = intField(more, 'ddnet_character.freeze_end');
    return end === -1 || end > moment.tick;
}
