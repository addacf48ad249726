#include "proxy/wire/message.h"
