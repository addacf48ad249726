// Elements that stay where they are while what they say changes, so that no press, focus or chosen text on them is lost.

const keyOf = (node: Node): string | undefined => (node instanceof HTMLElement ? node.dataset['key'] : undefined);

/** Says which element it is among those beside it. What listens stands in one that has a key. */
export function keyed<T extends HTMLElement>(key: string | number, element: T): T {
    element.dataset['key'] = `${key}`;
    return element;
}

/** Makes an element's children those that are wanted. Of those with the same key, or the same place where they have none, the
 *  one that is there stays, and only what it says is changed: what it does when it is pressed is what it did at first. */
export function settle(parent: Element, wanted: readonly Node[]): void {
    const stays = new Set(wanted.map(keyOf));
    const kept = new Map<string, ChildNode>();
    for (const child of [...parent.childNodes]) {
        const key = keyOf(child);
        if (key === undefined) continue;
        if (stays.has(key)) kept.set(key, child);
        else child.remove(); // before others would have to move: what moves loses the focus
    }
    let at = parent.firstChild;
    for (const node of wanted) {
        const key = keyOf(node);
        const old = key === undefined ? at && keyOf(at) === undefined ? at : undefined : kept.get(key);
        if (key !== undefined) kept.delete(key);
        if (!old || old.nodeName !== node.nodeName) {
            parent.insertBefore(node, at);
            continue;
        }
        if (old === at) at = at.nextSibling;
        else parent.insertBefore(old, at);
        liken(old, node);
    }
    while (at) {
        const next: ChildNode | null = at.nextSibling;
        at.remove();
        at = next;
    }
}

function liken(old: Node, wanted: Node): void {
    if (!(old instanceof Element && wanted instanceof Element)) {
        if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
        return;
    }
    for (const name of old.getAttributeNames()) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    settle(old, [...wanted.childNodes]);
}
