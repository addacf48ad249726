// Completes the names of keys and values in a filter.
import { fetchJson } from './api';
import { setChildren, makeElement } from './dom';

interface FilterKeys { keys: string[]; item_keys: string[]; item_types: string[]; words: Record<string, string[]>; item_words: Record<string, string[]> }

const GRAMMAR_WORDS = ['and', 'or', 'not', 'true', 'false', 'null'];
const MAX_PROPOSALS = 12;
const WORD_AT_END = /[\w.]*$/;
const COMPARISON_AT_END = /([\w.]+)\s*(?:==|!=|~|<=?|>=?)\s*["']?([\w.]*)$/;

/** Returns the words that can complete the text, and the offset at which the last word of the text begins. */
export function proposeWords(keys: FilterKeys, text: string): { begin: number; words: string[] } {
    const value = COMPARISON_AT_END.exec(text);
    const known = value ? keys.words[value[1] ?? ''] ?? keys.item_words[value[1] ?? ''] : undefined;
    const typed = known && value ? value[2] ?? '' : WORD_AT_END.exec(text)?.[0] ?? '';
    const inItems = /(?:any|count)\s*\(\s*items\s*:[^)]*$/.test(text);
    const all = known ?? (inItems ? [...keys.item_keys, ...keys.item_types] : [...keys.words['type'] ?? [], ...keys.keys, ...GRAMMAR_WORDS]);
    const lower = typed.toLowerCase();
    const fitting = all.filter((word) => word.toLowerCase().startsWith(lower) && word !== typed);
    const inside = all.filter((word) => lower.length > 2 && !fitting.includes(word) && word.toLowerCase().includes(lower) && word !== typed);
    return { begin: text.length - typed.length, words: typed || known ? [...fitting, ...inside].slice(0, MAX_PROPOSALS) : [] };
}

export class Completion {
    private keys: FilterKeys | null = null;
    private readonly list = makeElement('ul', 'proposals');
    private words: string[] = [];
    private begin = 0;
    private chosenIndex = -1;

    constructor(private readonly input: HTMLInputElement) {
        this.list.id = `${input.id}-proposals`;
        this.list.setAttribute('role', 'listbox');
        this.list.hidden = true;
        input.after(this.list);
        for (const [name, value] of [['role', 'combobox'], ['aria-autocomplete', 'list'], ['aria-expanded', 'false'], ['aria-controls', this.list.id]]) {
            input.setAttribute(name ?? '', value ?? '');
        }
        input.addEventListener('focus', () => { void this.loadKeys(); });
        input.addEventListener('input', () => { void this.loadKeys().then(() => this.showProposals()); });
        input.addEventListener('keydown', (event) => this.handleKey(event));
        input.addEventListener('blur', () => { setTimeout(() => this.hide(), 150); });
    }

    private async loadKeys(): Promise<void> {
        this.keys ??= await fetchJson<FilterKeys>('/api/keys').catch(() => null);
    }

    private showProposals(): void {
        if (!this.keys || document.activeElement !== this.input) return;
        const cursor = this.input.selectionStart ?? this.input.value.length;
        const { begin, words } = proposeWords(this.keys, this.input.value.slice(0, cursor));
        this.words = words;
        this.begin = begin;
        this.chosenIndex = -1;
        if (words.length === 0) return this.hide();
        setChildren(this.list, words.map((word, index) => {
            const entry = makeElement('li', '', word);
            entry.id = `${this.list.id}-${index}`;
            entry.setAttribute('role', 'option');
            entry.addEventListener('pointerdown', (event) => {
                event.preventDefault();
                this.insertProposal(index);
            });
            return entry;
        }));
        this.list.hidden = false;
        this.input.setAttribute('aria-expanded', 'true');
    }

    private hide(): void {
        this.list.hidden = true;
        this.chosenIndex = -1;
        this.input.setAttribute('aria-expanded', 'false');
        this.input.removeAttribute('aria-activedescendant');
    }

    private insertProposal(index: number): void {
        const cursor = this.input.selectionStart ?? this.input.value.length;
        const before = this.input.value.slice(0, this.begin) + (this.words[index] ?? '');
        this.input.value = before + this.input.value.slice(cursor);
        this.input.setSelectionRange(before.length, before.length);
        this.hide();
    }

    private handleKey(event: KeyboardEvent): void {
        if (this.list.hidden) return;
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) {
            event.preventDefault();
            this.chosenIndex = (this.chosenIndex + step + this.words.length) % this.words.length;
            [...this.list.children].forEach((entry, index) => entry.setAttribute('aria-selected', String(index === this.chosenIndex)));
            this.input.setAttribute('aria-activedescendant', `${this.list.id}-${this.chosenIndex}`);
        } else if (event.key === 'Tab' || (event.key === 'Enter' && this.chosenIndex >= 0)) {
            event.preventDefault();
            event.stopImmediatePropagation();
            this.insertProposal(Math.max(this.chosenIndex, 0));
        } else if (event.key === 'Escape') {
            event.stopPropagation();
            this.hide();
        }
    }
}
