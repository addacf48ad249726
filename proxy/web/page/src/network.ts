// The simulated network between players and server.
import { fetchOk } from './api';
import { button, make } from './dom';
import { clock } from './format';
import { DIRECTIONS, KNOBS, PRESETS, textOf, valuesOf, withSetting, type Direction, type Knob } from './impairment';
import { panel } from './panels';
import type { Store } from './store';
import { token } from './token';

export class Network {
    private readonly body = panel('network', 'network', 'E');
    private readonly sliders = new Map<string, { slider: HTMLInputElement; shown: HTMLOutputElement; knob: Knob; dir: Direction }>();
    private readonly text = make('input');
    private readonly said = make('p');
    private readonly now = make('p');
    private known: string | null = null;
    private readonly presets = PRESETS.map((preset) => ({ text: textOf(preset.c2s, preset.s2c),
        button: button(preset.title, `set the network to: ${preset.title}`, () => {
            this.text.value = textOf(preset.c2s, preset.s2c);
            this.moveSliders();
            void this.apply();
        }) }));

    constructor(private readonly store: Store) {
        this.text.id = 'impairment';
        this.text.spellcheck = false;
        this.text.autocomplete = 'off';
        this.text.setAttribute('aria-label', 'the network, as text');
        this.said.setAttribute('role', 'status');
        const presets = make('div', 'presets', ...this.presets.map((preset) => preset.button));
        const form = make('form', 'inline', this.text);
        const act = make('button', 'primary', 'change the network');
        form.append(act);
        form.addEventListener('submit', (event) => { event.preventDefault(); void this.apply(); });
        this.body.append(this.now, presets, make('div', 'ways', this.way('s2c', 'to clients'), this.way('c2s', 'to the server')), form, this.said);
        if (!token) {
            this.body.append(make('p', 'warn', 'The network can only be changed with the token: open the page at the address that twscope printed at start.'));
            for (const each of this.body.querySelectorAll<HTMLInputElement | HTMLButtonElement>('input, button')) each.disabled = true;
        }
        store.on('state', () => this.show());
    }

    private way(dir: Direction, title: string): HTMLElement {
        const box = make('fieldset', '', make('legend', '', title));
        for (const knob of KNOBS) {
            const slider = make('input');
            slider.type = 'range';
            slider.min = '0';
            slider.max = String(knob.most);
            slider.step = String(knob.step);
            slider.value = '0';
            slider.id = `${dir}-${knob.name}`;
            const shown = make('output');
            const label = make('label', '', make('span', '', knob.title), slider, shown);
            slider.addEventListener('input', () => {
                this.text.value = withSetting(this.text.value, dir, knob.name, Number(slider.value));
                this.showValues();
            });
            slider.addEventListener('change', () => void this.apply());
            this.sliders.set(slider.id, { slider, shown, knob, dir });
            box.append(label);
        }
        return box;
    }

    /** Shows the values of the text, including those that are beyond a slider's range. */
    private showValues(): void {
        const values = valuesOf(this.text.value);
        for (const { dir, shown, knob } of this.sliders.values()) shown.textContent = `${values[dir][knob.name] ?? 0}${knob.unit ? ` ${knob.unit}` : ''}`;
    }

    /** Moves the sliders to the values of the text. */
    private moveSliders(): void {
        const values = valuesOf(this.text.value);
        for (const dir of DIRECTIONS) {
            for (const { name } of KNOBS) {
                const slider = this.sliders.get(`${dir}-${name}`)?.slider;
                if (slider) slider.value = String(values[dir][name] ?? 0);
            }
        }
        this.showValues();
    }

    private show(): void {
        const { state } = this.store;
        if (!state) return;
        const by = state.impaired_by;
        this.now.textContent = `now: ${state.impairment}${by ? `, set at ${clock(by.time_ms)} from ${by.from}` : ''}`;
        const { c2s, s2c } = valuesOf(state.impairment);
        for (const preset of this.presets) preset.button.setAttribute('aria-pressed', String(preset.text === textOf(c2s, s2c)));
        if (state.impairment === this.known || this.body.contains(document.activeElement)) return;
        this.known = state.impairment;
        this.text.value = state.impairment;
        this.moveSliders();
    }

    private async apply(): Promise<void> {
        try {
            const answer = await fetchOk('/api/impairment', { method: 'PUT', headers: { 'Content-Type': 'text/plain' }, body: this.text.value || 'none' });
            this.known = (await answer.text()).trim();
            this.said.textContent = `changed to ${this.known}`;
            this.said.className = 'good';
        } catch (error) {
            this.said.textContent = (error as Error).message;
            this.said.className = 'bad';
        }
    }
}
