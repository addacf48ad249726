#include "proxy/wire/chunk.h"
