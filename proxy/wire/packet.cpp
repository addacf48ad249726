#include "proxy/wire/packet.h"
