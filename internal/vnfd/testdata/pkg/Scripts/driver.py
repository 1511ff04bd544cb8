# driver placeholder
