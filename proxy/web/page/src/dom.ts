// Elements. Text that a peer can choose is inserted only through textContent, so it is never parsed as HTML.

export function at<T extends HTMLElement = HTMLElement>(id: string): T {
    const found = document.getElementById(id);
    if (!found) throw new Error(`no element ${id}`);
    return found as T;
}

type Child = Node | string | number | null | undefined;

export function make<K extends keyof HTMLElementTagNameMap>(
    name: K, className = '', ...children: Child[]): HTMLElementTagNameMap[K] {
    const made = document.createElement(name);
    if (className) made.className = className;
    for (const child of children) {
        if (child === null || child === undefined) continue;
        made.append(child instanceof Node ? child : document.createTextNode(shown(String(child))));
    }
    return made;
}

// Control characters, and characters that change the direction of text, with which a name could disguise itself.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Returns the text with hidden characters made visible. */
export function shown(text: string): string {
    return text.replace(HIDDEN, (hidden) => `⟨${hidden.charCodeAt(0).toString(16)}⟩`);
}

export const setChildren = (parent: HTMLElement, children: Node[]): void => parent.replaceChildren(...children);

export function button(text: string, title: string, act: () => void): HTMLButtonElement {
    const made = make('button', '', text);
    made.type = 'button';
    made.title = title;
    made.addEventListener('click', act);
    return made;
}

/** Makes a button that looks like a link. */
export function linkButton(text: string, title: string, act: () => void, className = ''): HTMLButtonElement {
    const made = button(text, title, act);
    made.className = `link ${className}`;
    return made;
}

/** Makes a link to another site, which is not told the address of this page. */
export function link(address: string, text: string): HTMLAnchorElement {
    const made = make('a', '', text);
    made.href = address;
    made.target = '_blank';
    made.rel = 'noreferrer';
    return made;
}

export function row(...cells: (Child | HTMLTableCellElement)[]): HTMLTableRowElement {
    return make('tr', '', ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make('td', '', cell))));
}

export const number = (text: Child, className = ''): HTMLTableCellElement => make('td', `number ${className}`, text);

/** Makes the browser download a file. */
export function save(blob: Blob, name: string): void {
    const link = make('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
