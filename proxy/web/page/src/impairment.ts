// Converts an impairment between text and slider values; the presets.

export interface SliderSpec { name: string; title: string; unit: string; max: number; step: number }

export const SLIDERS: SliderSpec[] = [
    { name: 'delay', title: 'delay', unit: 'ms', max: 500, step: 5 },
    { name: 'jitter', title: 'jitter', unit: 'ms', max: 200, step: 1 },
    { name: 'loss', title: 'loss', unit: '%', max: 30, step: 0.5 },
    { name: 'burst', title: 'lost in a row', unit: '', max: 20, step: 1 },
    { name: 'dup', title: 'doubled', unit: '%', max: 20, step: 0.5 },
    { name: 'reorder', title: 'out of order', unit: '%', max: 20, step: 0.5 },
];

export type Direction = 'c2s' | 's2c';
export const DIRECTIONS: Direction[] = ['c2s', 's2c'];
export type SliderValues = Partial<Record<string, number>>;

export const PRESETS: { title: string; c2s: SliderValues; s2c: SliderValues }[] = [
    { title: 'none', c2s: {}, s2c: {} },
    { title: 'Wi-Fi', c2s: { delay: 5, jitter: 4, loss: 0.5 }, s2c: { delay: 5, jitter: 4, loss: 0.5, burst: 2 } },
    { title: '4G', c2s: { delay: 30, jitter: 15, loss: 0.5 }, s2c: { delay: 25, jitter: 20, loss: 1, burst: 3 } },
    { title: 'other continent', c2s: { delay: 75, jitter: 3, loss: 0.5 }, s2c: { delay: 75, jitter: 3, loss: 0.5 } },
    { title: 'bad night', c2s: { delay: 60, jitter: 40, loss: 4, burst: 3, reorder: 1 }, s2c: { delay: 80, jitter: 60, loss: 8, burst: 5, dup: 1, reorder: 2 } },
];

const settingsText = (values: SliderValues): string => SLIDERS.filter(({ name }) => values[name])
    .filter(({ name }) => name !== 'burst' || (values['loss'] && (values['burst'] ?? 0) > 1))
    .map(({ name, unit }) => `${name}=${values[name]}${unit}`).join(',');

/** Returns the values as a text that twscope understands. */
export function impairmentText(c2s: SliderValues, s2c: SliderValues): string {
    const parts = ([['c2s', settingsText(c2s)], ['s2c', settingsText(s2c)]] as const).filter(([, text]) => text);
    return parts.length === 0 ? 'none' : parts.map(([dir, text]) => `${dir}:${text}`).join(';');
}

/** Returns the text with one setting changed. The text of all other settings stays the same. */
export function changeSetting(text: string, dir: Direction, name: string, value: number): string {
    const settings = parseSettings(text);
    const ours = settings[dir];
    const unit = SLIDERS.find((knob) => knob.name === name)?.unit ?? '';
    if (value > (name === 'burst' ? 1 : 0)) ours.set(name, `${value}${unit}`);
    else ours.delete(name);
    if (!ours.has('loss')) ours.delete('burst'); // burst lengths mean nothing without loss
    const parts = DIRECTIONS.filter((each) => settings[each].size > 0)
        .map((each) => `${each}:${[...settings[each]].map(([known, said]) => `${known}=${said}`).join(',')}`);
    return parts.length === 0 ? 'none' : parts.join(';');
}

/** Returns the unparsed settings of each direction in a text. */
function parseSettings(text: string): Record<Direction, Map<string, string>> {
    const settings = { c2s: new Map<string, string>(), s2c: new Map<string, string>() };
    for (const section of text.split(';')) {
        const [, dir, rest] = /^\s*(?:(c2s|s2c)\s*:)?(.*)$/.exec(section) ?? [];
        for (const setting of (rest ?? '').split(',')) {
            const [, name, said] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(setting) ?? [];
            if (!name || said === undefined) continue;
            for (const each of dir ? [dir as Direction] : DIRECTIONS) settings[each].set(name, said);
        }
    }
    return settings;
}

/** Returns the slider values for a text. Leaves out settings without a slider, such as a rate. */
export function sliderValues(text: string): Record<Direction, SliderValues> {
    const values = { c2s: {} as SliderValues, s2c: {} as SliderValues };
    for (const [dir, settings] of Object.entries(parseSettings(text)) as [Direction, Map<string, string>][]) {
        for (const [name, said] of settings) {
            const [, value, unit] = /^([\d.]+)\s*(\w*|%)$/.exec(said) ?? [];
            if (value !== undefined) values[dir][name] = Number(value) * (unit === 's' ? 1000 : unit === 'us' ? 0.001 : 1);
        }
    }
    return values;
}
