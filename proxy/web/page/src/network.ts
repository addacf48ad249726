// The simulated network between players and server.
import { fetchOk, token } from './api';
import { makeButton, makeElement } from './dom';
import { formatTime } from './format';
import { DIRECTIONS, SLIDERS, PRESETS, impairmentText, sliderValues, changeSetting, type Direction, type SliderSpec } from './impairment';
import { addPanel } from './panels';
import type { Store } from './store';

export class Network {
    private readonly body = addPanel('network', 'network', 'E');
    private readonly sliders = new Map<string, { slider: HTMLInputElement; shown: HTMLOutputElement; knob: SliderSpec; dir: Direction }>();
    private readonly text = makeElement('input');
    private readonly resultText = makeElement('p');
    private readonly currentText = makeElement('p');
    private shownImpairment: string | null = null;
    private readonly presets = PRESETS.map((preset) => ({ text: impairmentText(preset.c2s, preset.s2c),
        button: makeButton(preset.title, `set the network to: ${preset.title}`, () => {
            this.text.value = impairmentText(preset.c2s, preset.s2c);
            this.moveSliders();
            void this.applyImpairment();
        }) }));

    constructor(private readonly store: Store) {
        this.text.id = 'impairment';
        this.text.spellcheck = false;
        this.text.autocomplete = 'off';
        this.text.setAttribute('aria-label', 'the network, as text');
        this.resultText.setAttribute('role', 'status');
        const presets = makeElement('div', 'presets', ...this.presets.map((preset) => preset.button));
        const form = makeElement('form', 'inline', this.text);
        const act = makeElement('button', 'primary', 'change the network');
        form.append(act);
        form.addEventListener('submit', (event) => { event.preventDefault(); void this.applyImpairment(); });
        this.body.append(this.currentText, presets, makeElement('div', 'ways', this.makeDirectionBox('s2c', 'to clients'), this.makeDirectionBox('c2s', 'to the server')), form, this.resultText);
        if (!token) {
            this.body.append(makeElement('p', 'warn', 'The network can only be changed with the token: open the page at the address that twscope printed at start.'));
            for (const each of this.body.querySelectorAll<HTMLInputElement | HTMLButtonElement>('input, button')) each.disabled = true;
        }
        store.on('state', () => this.show());
    }

    private makeDirectionBox(dir: Direction, title: string): HTMLElement {
        const box = makeElement('fieldset', '', makeElement('legend', '', title));
        for (const knob of SLIDERS) {
            const slider = makeElement('input');
            slider.type = 'range';
            slider.min = '0';
            slider.max = String(knob.max);
            slider.step = String(knob.step);
            slider.value = '0';
            slider.id = `${dir}-${knob.name}`;
            const shown = makeElement('output');
            const label = makeElement('label', '', makeElement('span', '', knob.title), slider, shown);
            slider.addEventListener('input', () => {
                this.text.value = changeSetting(this.text.value, dir, knob.name, Number(slider.value));
                this.showValues();
            });
            slider.addEventListener('change', () => void this.applyImpairment());
            this.sliders.set(slider.id, { slider, shown, knob, dir });
            box.append(label);
        }
        return box;
    }

    /** Shows the values of the text, including those that are beyond a slider's range. */
    private showValues(): void {
        const values = sliderValues(this.text.value);
        for (const { dir, shown, knob } of this.sliders.values()) shown.textContent = `${values[dir][knob.name] ?? 0}${knob.unit ? ` ${knob.unit}` : ''}`;
    }

    /** Moves the sliders to the values of the text. */
    private moveSliders(): void {
        const values = sliderValues(this.text.value);
        for (const dir of DIRECTIONS) {
            for (const { name } of SLIDERS) {
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
        this.currentText.textContent = `now: ${state.impairment}${by ? `, set at ${formatTime(by.time_ms)} from ${by.from}` : ''}`;
        const { c2s, s2c } = sliderValues(state.impairment);
        for (const preset of this.presets) preset.button.setAttribute('aria-pressed', String(preset.text === impairmentText(c2s, s2c)));
        if (state.impairment === this.shownImpairment || this.body.contains(document.activeElement)) return;
        this.shownImpairment = state.impairment;
        this.text.value = state.impairment;
        this.moveSliders();
    }

    private async applyImpairment(): Promise<void> {
        try {
            const answer = await fetchOk('/api/impairment', { method: 'PUT', headers: { 'Content-Type': 'text/plain' }, body: this.text.value || 'none' });
            this.shownImpairment = (await answer.text()).trim();
            this.resultText.textContent = `changed to ${this.shownImpairment}`;
            this.resultText.className = 'good';
        } catch (error) {
            this.resultText.textContent = (error as Error).message;
            this.resultText.className = 'bad';
        }
    }
}
