#include "proxy/wire/huffman.h"
